"""The adapters for AWS, each at a moto server of its own."""

from __future__ import annotations

import json
from collections import UserList
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.config import default_user_config
from moto.stepfunctions.parser.api import ExecutionStatus
from moto.stepfunctions.parser.backend.execution import Execution

from headrace.aws.bus import AwsBus
from headrace.aws.cloud import make_cloud
from headrace.aws.executions import AwsExecutions
from headrace.aws.objects import S3Objects
from headrace.aws.runs import AwsRuns
from headrace.aws.system import SystemClock
from headrace.ports import Cloud, Objects, Runs
from tests.aws.moto_machines import ACCOUNT, REGION
from tests.aws.moto_stack import MACHINES, STACK, MotoStack, moto_server, moto_stack, session

QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:seen"


def cloud_of(stack: MotoStack) -> Cloud:
    """Return all ports of the stack."""
    return make_cloud(stack.settings, stack.clients)


@contextmanager
def runs() -> Iterator[Runs]:
    with moto_stack() as stack:
        yield AwsRuns(stack.clients.dynamodb, f"{STACK}-runs", SystemClock())


@contextmanager
def objects(bucket: str) -> Iterator[Objects]:
    with moto_server() as url, closing(S3Objects(session=session(), endpoint_url=url)) as opened:
        session().client("s3", endpoint_url=url).create_bucket(Bucket=bucket)
        yield opened


class Queue(UserList[Any]):
    """What has arrived at an SQS queue, read anew at each look."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = session().client("sqs", endpoint_url=url)
        self._url = self._client.create_queue(QueueName="seen")["QueueUrl"]

    @property
    def url(self) -> str:
        return str(self._url)

    def __len__(self) -> int:
        for message in self._client.receive_message(QueueUrl=self._url).get("Messages", ()):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            self.data.append(self.parse(message["Body"]))
        return super().__len__()

    def parse(self, body: str) -> Any:
        return json.loads(body)


class Tokens(Queue):
    """Task tokens, as a machine sent them."""

    def parse(self, body: str) -> Any:
        return body


@contextmanager
def bus() -> Iterator[tuple[AwsBus, Queue]]:
    with moto_stack() as stack:
        queue, events = Queue(stack.url), stack.clients.events
        events.put_rule(Name="all", EventBusName=STACK, EventPattern='{"source": ["headrace.run"]}')
        events.put_targets(Rule="all", EventBusName=STACK, Targets=[{"Id": "queue", "Arn": QUEUE_ARN}])
        yield AwsBus(stack.clients.events, STACK), queue


def stop_at_once(self: Execution, stop_date: Any, error: str | None, cause: str | None) -> None:  # noqa: ARG001
    """Close the execution; moto only does so when the task that waits for its token has ended by itself."""
    self.stop_date, self.exec_status = stop_date, ExecutionStatus.ABORTED


@contextmanager
def executions() -> Iterator[tuple[AwsExecutions, Tokens]]:
    """Run a machine at moto's own Step Functions; its token goes to a queue, since moto's Lambda needs a container."""
    with moto_stack() as stack, patch.dict(default_user_config, {"stepfunctions": {"execute_state_machine": True}}):
        tokens = Tokens(stack.url)
        wait = {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "TimeoutSeconds": 600,
            "HeartbeatSeconds": 300,
            "Parameters": {"QueueUrl": tokens.url, "MessageBody.$": "$$.Task.Token"},
            "End": True,
        }
        definition = json.dumps({"StartAt": "Wait", "States": {"Wait": wait}})
        port = {"MOTO_PORT": stack.url.rpartition(":")[2]}
        with patch.dict("os.environ", port), patch.object(Execution, "stop", stop_at_once):
            stack.clients.stepfunctions.create_state_machine(
                name=f"{STACK}-waits", definition=definition, roleArn=f"arn:aws:iam::{ACCOUNT}:role/machine"
            )
            yield AwsExecutions(stack.clients.stepfunctions, MACHINES), tokens
