"""A stack at moto whose machines are processes: the state machines, the AWS adapters and the real agent in one run.

What is real: every state machine file, every function from its entry on, every AWS adapter; the agent's processes; S3,
DynamoDB, EC2, EventBridge and Systems Manager as moto answers for them over HTTP. What is not: Step Functions is our
interpreter and Lambda a thread; a rule's targets are queues that this module empties, as moto calls no function; a
machine is a process that begins when Systems Manager is first asked for it, reads its node file from the instance's
tags as user data does, and shares a file system with the others in place of NVMe over fabrics; a document's commands
run in its environment.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID

from moto.ec2.models.instances import InstanceBackend

from headrace.aws.cloud import make_cloud
from headrace.aws.system import SystemClock, SystemEntropy
from headrace.domain.instants import from_text
from headrace.domain.launch import LaunchRequest
from headrace.handlers import _entry
from headrace.local import deliveries
from headrace.local.control_plane import ControlPlane
from headrace.local.documents import LocalDocuments
from headrace.local.journal import Journal
from headrace.local.machines import handler as step_of
from headrace.local.process_nodes import ProcessNodes
from headrace.local.settings import node_environment
from headrace.ports import Cloud, Fleets, LaunchResult, Node
from tests.aws.moto_machines import ACCOUNT, REGION, instances_with, invocation
from tests.aws.moto_stack import ROLE_ID, RUN_BUCKET, STACK, MotoStack, moto_stack, session

UPLOADS = {
    "source": ["aws.s3"],
    "detail-type": ["Object Created"],
    "detail": {"bucket": {"name": [RUN_BUCKET]}, "object": {"key": [{"prefix": "jobs/"}]}},
}
AGENTS = {"source": ["headrace.agent"]}
CONTEXT = SimpleNamespace(
    function_name="headrace", memory_limit_in_mb=512, invoked_function_arn="arn", aws_request_id="request"
)


class FolderNamedForCredentials(ProcessNodes):
    """Nodes whose file names their folder as user data does on AWS."""

    def node_file(self, node: Node, request: LaunchRequest) -> dict[str, object]:
        return {**super().node_file(node, request), "node_folder": f"{ROLE_ID}:{node.node_id}"}


class ProcessMachines:
    """moto's instances as processes; `processes` is set once the address of the endpoints is known."""

    def __init__(self) -> None:
        self.processes: ProcessNodes
        self.documents: LocalDocuments
        self._booted: dict[str, Node] = {}
        self._lock = threading.Lock()

    def online(self, tags: Mapping[str, str]) -> list[str]:
        with self._lock:
            nodes = [self._boot(one) for one in instances_with(tags)]
        return [node.node_id for node in nodes if self.processes.has_agent(node.run_id, node.node_id)]

    def run(self, document: str, tags: Mapping[str, str], parameters: Mapping[str, str]) -> str:
        role: Any = tags["headrace:role"]
        name = document.removeprefix(f"{STACK}-")
        return str(UUID(self.documents.send(name, tags["headrace:run-id"], role, parameters)))

    def invocations(self, command_id: str) -> list[dict[str, Any]]:
        status = self.documents.command_status(UUID(command_id).hex)
        return [
            *(invocation(node_id, "Success", "") for node_id in sorted(status.succeeded)),
            *(invocation(node_id, "InProgress", "") for node_id in sorted(status.pending)),
            *(invocation(node_id, "Failed", output) for node_id, output in sorted(status.failed.items())),
        ]

    def nodes_of(self, run_id: str) -> Sequence[Node]:
        return [node for node in self._booted.values() if node.run_id == run_id]

    def end(self, node_ids: Sequence[str]) -> None:
        """Begin to end the processes of these instances."""
        for node_id in node_ids:
            if node_id in self._booted:
                self.processes.stop(self._booted[node_id].run_id, node_id)

    def _boot(self, instance: Any) -> Node:
        if instance.id not in self._booted:
            tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
            request = _request(instance, tags)
            node = Node(
                node_id=instance.id,
                run_id=request.run_id,
                role=request.role,
                instance_type=instance.instance_type,
                zone="",
                address="127.0.0.1",
                life="running",
                launched_at=SystemClock().now(),
            )
            self.processes.start(node, request)
            self._booted[instance.id] = node
        return self._booted[instance.id]


def _request(instance: Any, tags: Mapping[str, str]) -> LaunchRequest:
    """Return what a machine knows of its launch: its own tags, which it reads from its metadata."""
    role: Any = tags["headrace:role"]
    return LaunchRequest(
        run_id=tags["headrace:run-id"],
        role=role,
        attempt=int(tags["headrace:attempt"]),
        count=1,
        instance_types=(instance.instance_type,),
        market="on-demand",
        region=REGION,
        client_token="",
        deadline_at=from_text(tags["headrace:deadline-at"]),
    )


class SharingFleets:
    """The Fleets port of AWS, with the folder that processes of one machine share."""

    def __init__(self, fleets: Fleets, processes: ProcessNodes) -> None:
        self.terminate = fleets.terminate
        self._fleets = fleets
        self._processes = processes

    def launch(self, request: LaunchRequest) -> LaunchResult:
        return self._fleets.launch(request)

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        return tuple(map(self._shared, self._fleets.list_nodes(run_id)))

    def find(self, node_id: str) -> Node | None:
        node = self._fleets.find(node_id)
        return None if node is None else self._shared(node)

    def _shared(self, node: Node) -> Node:
        return replace(node, shared_folder=str(self._processes.folder(node.run_id, node.node_id)))


@dataclass(frozen=True)
class AwsSite:
    """The stack, its ports, what drives its machines, and the executions that uploads started."""

    stack: MotoStack
    cloud: Cloud
    plane: ControlPlane
    machines: ProcessMachines
    executions: list[str]


@contextmanager
def aws_site(folder: Path) -> Iterator[AwsSite]:
    """Open a stack at moto, and end all that was started in it."""
    machines, executions = ProcessMachines(), list[str]()
    with ExitStack() as stack:
        moto = stack.enter_context(moto_stack(machines))
        _open_machines(stack, moto, machines, folder)
        plane = ControlPlane(Journal(folder / "logs", SystemClock()))
        stack.callback(plane.close)
        cloud = _cloud(moto, machines, plane)
        stack.enter_context(_ending(machines))
        stack.enter_context(_lambda(cloud))
        plane.open(cloud)
        stack.callback(plane.drain)
        stack.enter_context(_rule(moto, STACK, "agents", AGENTS, plane.deliver))

        def start(event: dict[str, Any]) -> None:
            executions.append(plane.start_run(event, f"upload-{len(executions)}"))

        notify = moto.clients.session.client("s3", endpoint_url=moto.url).put_bucket_notification_configuration
        notify(Bucket=RUN_BUCKET, NotificationConfiguration={"EventBridgeConfiguration": {}})
        stack.enter_context(_rule(moto, "default", "uploads", UPLOADS, start))
        stack.callback(plane.end_runs, 60.0)
        yield AwsSite(moto, cloud, plane, machines, executions)


def _open_machines(stack: ExitStack, moto: MotoStack, machines: ProcessMachines, folder: Path) -> None:
    elsewhere = {f"AWS_ENDPOINT_URL_{name}": moto.url for name in ("STS", "SECRETS_MANAGER")}
    environment = {**node_environment(os.environ, "a", "b", moto.url, moto.url), **elsewhere}
    processes = FolderNamedForCredentials(
        folder / "nodes", environment, run_bucket=RUN_BUCKET, stop_grace_seconds=5, idle_lease_seconds=60
    )
    stack.callback(processes.close)
    machines.processes = processes
    machines.documents = LocalDocuments(processes, machines.nodes_of, SystemEntropy())
    stack.callback(machines.documents.close)


def _cloud(moto: MotoStack, machines: ProcessMachines, plane: ControlPlane) -> Cloud:
    cloud = make_cloud(moto.settings, moto.clients)

    def put_events(entries: Any) -> Any:
        return moto.clients.events.put_events(Entries=list(entries))

    quick = replace(
        cloud.settings, poll_seconds=1, heartbeat_seconds=1, heartbeat_timeout_seconds=60, stop_grace_seconds=5
    )
    return replace(
        cloud,
        fleets=SharingFleets(cloud.fleets, machines.processes),
        executions=plane.executions(put_events),
        settings=quick,
    )


@contextmanager
def _lambda(cloud: Cloud) -> Iterator[None]:
    """Have every function called as Lambda calls it: by its entry, with JSON in and JSON out."""

    def entry_of(function: str) -> Any:
        module = importlib.import_module(step_of(function).__module__)
        return lambda payload, _cloud: as_json(module.handler(as_json(payload), CONTEXT))

    def as_json(value: Any) -> Any:
        return json.loads(json.dumps(value))

    with (
        patch.object(deliveries, "handler", entry_of),
        patch("headrace.aws.cloud.open_cloud", lambda: cloud),
        patch.dict(os.environ, dict.fromkeys(("POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"), STACK)),
    ):
        _entry._instrumented.cache_clear()
        yield
    _entry._instrumented.cache_clear()


@contextmanager
def _ending(machines: ProcessMachines) -> Iterator[None]:
    original = InstanceBackend.terminate_instances

    def terminate_instances(self: InstanceBackend, instance_ids: list[str]) -> Any:
        answer = original(self, instance_ids)
        machines.end(instance_ids)
        return answer

    with patch.object(InstanceBackend, "terminate_instances", terminate_instances):
        yield


@contextmanager
def _rule(moto: MotoStack, bus: str, name: str, pattern: Mapping[str, Any], target: Any) -> Iterator[None]:
    """Have a rule of the bus call the target with each event that fits, through a queue."""
    queue = session().client("sqs", endpoint_url=moto.url)
    url = queue.create_queue(QueueName=name)["QueueUrl"]
    moto.clients.events.put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps(pattern))
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    moto.clients.events.put_targets(Rule=name, EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
    is_over = threading.Event()

    def pump() -> None:
        while not is_over.wait(0.05):
            for message in queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", ()):
                target(json.loads(message["Body"]))
                queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    thread = threading.Thread(target=pump, name=f"rule-{name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
