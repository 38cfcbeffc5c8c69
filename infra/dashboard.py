"""One page in CloudWatch: runs and how they ended, functions and how they fare, what was not delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

WIDTH = 12
ENDINGS = ("ExecutionsStarted", "ExecutionsSucceeded", "ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
PERIOD = Duration.minutes(5)


class Dashboard(Construct):
    """Made only when asked for, since an account pays for each dashboard beyond its free ones."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        functions: Mapping[str, lambda_.Function],
        dead_letters: sqs.Queue,
        machines_prefix: str,
        machines: Sequence[str],
    ) -> None:
        super().__init__(scope, id_)
        page = cloudwatch.Dashboard(self, "Page", dashboard_name=Stack.of(self).stack_name)
        for stem in machines:
            page.add_widgets(_graph(stem, [_ending(f"{machines_prefix}{stem}", name) for name in ENDINGS]))
        page.add_widgets(
            _graph("function errors", [one.metric_errors(period=PERIOD) for one in functions.values()]),
            _graph("function durations", [one.metric_duration(period=PERIOD) for one in functions.values()]),
        )
        waiting = dead_letters.metric_approximate_number_of_messages_visible(period=PERIOD)
        page.add_widgets(_graph("events that nobody took", [waiting]))


def _ending(machine_arn: str, name: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/States",
        metric_name=name,
        dimensions_map={"StateMachineArn": machine_arn},
        statistic="Sum",
        period=PERIOD,
    )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=WIDTH)
