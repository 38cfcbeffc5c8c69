"""What each call of a port needs to be allowed on AWS: actions, resources and circumstances, as adapters make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.domain.launch import LaunchRequest

STACK, REGION, ACCOUNT = "lab", "eu-west-1", "123456789012"
RUN_BUCKET = "run-bucket"
OURS = {"aws:ResourceTag/headrace:stack": STACK, "ssm:resourceTag/headrace:stack": STACK}
AS_OURS = {"aws:RequestTag/headrace:stack": STACK}


@dataclass(frozen=True)
class Right:
    """One thing that must be allowed."""

    action: str
    resource: str = "*"
    circumstances: Mapping[str, str | list[str]] = field(default_factory=dict)


def arn(service: str, rest: str) -> str:
    """Return an ARN in the stack's region and account."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"


def table(index: str = "") -> str:
    """Return the run table, or its index."""
    return arn("dynamodb", f"table/{STACK}-runs{index}")


def item(action: str) -> Callable[..., list[Right]]:
    """Return the rights of one call on the table."""
    return lambda *_args, **_more: [Right(f"dynamodb:{action}", table())]


def on_object(*actions: str) -> Callable[..., list[Right]]:
    """Return the rights of one call on an object."""

    def rights(bucket: str, key: str, *_more: Any) -> list[Right]:
        return [Right(f"s3:{action}", f"arn:aws:s3:::{_bucket(bucket)}/{key}") for action in actions]

    return rights


def _bucket(name: str) -> str:
    return RUN_BUCKET if name == "headrace-runs" else name


def listed(bucket: str, *_args: Any, **_more: Any) -> list[Right]:
    """Return the rights of one page of a listing."""
    return [Right("s3:ListBucket", f"arn:aws:s3:::{_bucket(bucket)}")]


def uploads_aborted(bucket: str, prefix: str) -> list[Right]:
    """Return the rights of removing what uploads left unfinished."""
    name = f"arn:aws:s3:::{_bucket(bucket)}"
    return [Right("s3:ListBucketMultipartUploads", name), Right("s3:AbortMultipartUpload", f"{name}/{prefix}x")]


def launched(request: LaunchRequest) -> list[Right]:
    """Return the rights of one launch: the fleet, the machines and their parts, their tags, their role."""
    template = arn("ec2", f"launch-template/lt-{STACK}-{request.role}-x86_64")
    made = {**AS_OURS, "ec2:LaunchTemplate": template, "ec2:CreateAction": "CreateFleet"}
    kinds = ("instance/i-0", "volume/vol-0", "network-interface/eni-0", "subnet/subnet-0123456789abcdef0")
    touched = [*(arn("ec2", kind) for kind in kinds), f"arn:aws:ec2:{REGION}::image/ami-0123456789abcdef3"]
    return [
        Right("ec2:DescribeInstances"),
        Right("ec2:DescribeInstanceTypeOfferings"),
        Right("ec2:DescribeLaunchTemplateVersions"),
        *([Right("ec2:DescribeCapacityReservations")] if request.reservation else []),
        Right("ec2:CreateFleet", template),
        # No launch template: it is not known that CreateFleet tells it.
        *(Right("ec2:CreateFleet", one, AS_OURS) for one in (arn("ec2", "fleet/fleet-0"), *touched)),
        *(Right("ec2:RunInstances", one, made) for one in (template, *touched)),
        *(Right("ec2:CreateTags", arn("ec2", kind), made) for kind in ("instance/i-0", "volume/vol-0", "fleet/f-0")),
    ]


def terminated(node_ids: Any) -> list[Right]:
    """Return the rights of ending machines."""
    return [Right("ec2:TerminateInstances", arn("ec2", f"instance/{one}"), OURS) for one in node_ids]


def sent(document: str, *_args: Any) -> list[Right]:
    """Return the rights of one document on one machine."""
    return [
        Right("ssm:SendCommand", arn("ssm", f"document/{STACK}-{document}")),
        Right("ssm:SendCommand", arn("ec2", "instance/i-0"), OURS),
    ]


def execution(action: str) -> Callable[..., list[Right]]:
    """Return the rights of one call on an execution; a stop looks first."""

    def rights(execution_arn: str, *_more: Any) -> list[Right]:
        machine, name = execution_arn.split(":")[-2:]
        target = arn("states", f"execution:{STACK}-{machine}:{name}")
        return [Right(f"states:{one}", target) for one in dict.fromkeys(("DescribeExecution", action))]

    return rights


def started(machine: str, name: str, *_more: Any) -> list[Right]:
    """Return the rights of a start, which looks at the execution when its name is taken."""
    return [
        Right("states:StartExecution", arn("states", f"stateMachine:{STACK}-{machine}")),
        Right("states:DescribeExecution", arn("states", f"execution:{STACK}-{machine}:{name}")),
    ]


def answered(action: str) -> Callable[..., list[Right]]:
    """Return the rights of answering a task."""
    return lambda *_args: [Right(f"states:SendTask{action}", arn("states", f"stateMachine:{STACK}-training_run"))]


def published(source: str, *_more: Any) -> list[Right]:
    """Return the rights of one event."""
    return [Right("events:PutEvents", arn("events", f"event-bus/{STACK}"), {"events:source": source})]


def looked(requests: Sequence[LaunchRequest], codes: Sequence[str]) -> list[Right]:
    """Return the rights of asking how quotas, zones and images stand."""
    kinds = ("Instances", "InstanceTypeOfferings", "LaunchTemplateVersions", "Images") if requests else ()
    quotas = [Right("servicequotas:GetServiceQuota", arn("servicequotas", f"ec2/{code}")) for code in codes]
    return [*(Right(f"ec2:Describe{kind}") for kind in kinds), *quotas]


NEEDED: Mapping[str, Mapping[str, Callable[..., list[Right]]]] = {
    "fleets": {
        "launch": launched,
        "terminate": terminated,
        "list_nodes": lambda *_args: [Right("ec2:DescribeInstances")],
    },
    "nodes": {
        "online": lambda *_args: [Right("ssm:DescribeInstanceInformation")],
        "send": sent,
        "command_status": lambda *_args: [Right("ssm:ListCommandInvocations")],
    },
    "objects": {
        "get": on_object("GetObject"),
        "head": on_object("GetObject"),
        "put": on_object("PutObject"),
        "delete": on_object("DeleteObject"),
        "page": listed,
        "abort_uploads": uploads_aborted,
    },
    "bus": {"put": published},
    "runs": {
        "insert": item("PutItem"),
        "read": item("GetItem"),
        "update": item("UpdateItem"),
        "delete": item("DeleteItem"),
        "items": item("Query"),
        "run_ids": lambda: [Right("dynamodb:Query", table("/index/by_age"))],
    },
    "executions": {
        "start": started,
        "stop": execution("StopExecution"),
        "is_running": execution("DescribeExecution"),
        "succeed": answered("Success"),
        "fail": answered("Failure"),
        "heartbeat": answered("Heartbeat"),
    },
    "checks": {
        "look": looked,
        "try_launches": lambda requests: [right for one in requests for right in launched(one)],
        "try_terminate": terminated,
    },
}
"""Rights by port and method; ports that call nobody are absent."""
