"""Puts the ports on AWS together: once per process for the functions, and once per command for a laptop."""

from __future__ import annotations

import os
from functools import lru_cache, partial

import boto3

from headrace.aws.batches import Launcher
from headrace.aws.bus import AwsBus
from headrace.aws.checks import AwsChecks
from headrace.aws.clients import Clients
from headrace.aws.elsewhere import AwsElsewhere
from headrace.aws.executions import AwsExecutions
from headrace.aws.fleets import AwsFleets
from headrace.aws.nodes import AwsNodes
from headrace.aws.objects import S3Objects
from headrace.aws.prices import PackagedPrices
from headrace.aws.runs import AwsRuns
from headrace.aws.settings import StackSettings, read_stack, run_settings
from headrace.aws.system import SystemClock, SystemEntropy
from headrace.ports import Cloud


@lru_cache(maxsize=1)
def open_cloud() -> Cloud:
    """Return the ports of the function's own stack, made once: later calls of the process share connections.

    Raises BadEnvironment.
    """
    return make_cloud(read_stack(os.environ), Clients(boto3.Session()))


def make_cloud(stack: StackSettings, clients: Clients) -> Cloud:
    """Return the ports of a stack through these clients; none of them is called yet."""
    clock, prices = SystemClock(), PackagedPrices()
    launcher = Launcher(stack.stack, partial(prices.arch_of, clients.session.region_name), stack.efa_types)
    return Cloud(
        fleets=AwsFleets(clients.ec2, launcher, stack.subnets, clock, stack.groups),
        nodes=AwsNodes(clients.ssm, stack.stack),
        objects=S3Objects(session=clients.session, endpoint_url=clients.endpoint_url),
        elsewhere=AwsElsewhere(clients),
        bus=AwsBus(clients.events, stack.stack),
        runs=AwsRuns(clients.dynamodb, f"{stack.stack}-runs", clock),
        executions=AwsExecutions(clients.stepfunctions, stack.machines),
        prices=prices,
        clock=clock,
        entropy=SystemEntropy(),
        settings=run_settings(stack),
        checks=AwsChecks(clients.ec2, clients.quotas, launcher, stack.subnets, stack.groups),
    )
