"""A deployed stack at one moto server: bucket, table, bus, subnets and launch templates under the agreed names."""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

import boto3
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses.fleets import Fleets
from moto.server import ThreadedMotoServer

from headrace.aws.clients import Clients
from headrace.aws.settings import StackSettings
from tests.aws.moto_machines import ACCOUNT, REGION, Machines, ScriptedMachines, systems_manager

STACK = "headrace"
RUN_BUCKET = "headrace-runs"
MACHINES = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{STACK}-"
ROLE_ID = "AROAEXAMPLEEXAMPLE"


@dataclass(frozen=True)
class MotoStack:
    """The clients and the settings of a stack that stands at moto."""

    url: str
    clients: Clients
    settings: StackSettings


def session() -> boto3.Session:
    """Return a session with keys that nobody checks."""
    return boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name=REGION)


@cache
def _server_url() -> str:
    """Start the one server that all tests of a process share, since starting it takes a while."""
    with patch.dict("os.environ", {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}):
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


@contextmanager
def moto_server() -> Iterator[str]:
    """Yield the address of a moto with nothing in it."""
    url = _server_url()
    urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()  # noqa: S310 - our own server
    yield url


@contextmanager
def moto_stack(machines: Machines | None = None) -> Iterator[MotoStack]:
    """Run moto with a stack in it, and what it lacks supplied."""
    with ExitStack() as stack:
        url = stack.enter_context(moto_server())
        stack.enter_context(systems_manager(machines or ScriptedMachines()))
        stack.enter_context(remembered_tokens())
        clients = Clients(session(), url)
        deploy(clients)
        subnets = {
            str(one["AvailabilityZone"]): str(one["SubnetId"]) for one in clients.ec2.describe_subnets()["Subnets"]
        }
        yield MotoStack(url, clients, StackSettings(STACK, RUN_BUCKET, ROLE_ID, subnets, MACHINES))


def deploy(clients: Clients) -> None:
    """Make what the stack's template makes, as far as functions and people use it."""
    outputs = {"RunBucketName": RUN_BUCKET, "TrainingRun": f"{MACHINES}training_run:live"}
    template = {
        "Resources": {"Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": STACK}}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    clients.cloudformation.create_stack(StackName=STACK, TemplateBody=json.dumps(template))
    for name in ("training_run", "decommission"):
        clients.stepfunctions.create_state_machine(
            name=f"{STACK}-{name}",
            definition=json.dumps({"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}),
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/machine",
        )
    clients.session.client("s3", endpoint_url=clients.endpoint_url).create_bucket(Bucket=RUN_BUCKET)
    clients.dynamodb.create_table(
        TableName=f"{STACK}-runs",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "run_id", "KeyType": "HASH"},
            {"AttributeName": "kind_name", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("run_id", "kind_name", "kind", "listed_at")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_age",
                "KeySchema": [
                    {"AttributeName": "kind", "KeyType": "HASH"},
                    {"AttributeName": "listed_at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    for arch in ("arm64", "x86_64"):
        image_id = register_image(clients, arch)
        for role in ("storage", "compute"):
            clients.ec2.create_launch_template(
                LaunchTemplateName=f"{STACK}-{role}-{arch}", LaunchTemplateData={"ImageId": image_id}
            )


def register_image(clients: Clients, arch: str) -> str:
    """Return the id of an image as headrace builds them; moto keeps nothing of what is registered but its name."""
    image_id = clients.ec2.register_image(Name=f"nodes-{arch}")["ImageId"]
    image: Any = ec2_backends[ACCOUNT][REGION].amis[image_id]
    image.architecture, image.root_device_name, image.ena_support = arch, "/dev/sda1", True
    clients.ec2.create_tags(Resources=[image_id], Tags=[{"Key": "headrace:fabric", "Value": "tcp roce"}])
    return image_id


@contextmanager
def remembered_tokens() -> Iterator[None]:
    """Have moto keep the client tokens of CreateFleet as EC2 does: it launches anew for each call without this."""
    known: dict[str, tuple[dict[str, Any], ActionResult]] = {}
    original = Fleets.create_fleet

    def create_fleet(self: Fleets) -> ActionResult:
        token, asked = self._get_param("ClientToken"), dict(self.params)
        if token not in known:
            known[token] = (asked, original(self))
        if known[token][0] != asked:
            raise EC2ClientError(
                "IdempotentParameterMismatch", f"the client token {token} was used with other parameters"
            )
        return known[token][1]

    with patch.object(Fleets, "create_fleet", create_fleet):
        yield
