"""The adapters that must keep the contracts of the ports: one context per port and cloud, added to by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.local.asl.loading import compile_machine
from headrace.local.bus import LocalBus
from headrace.local.documents import LocalDocuments
from headrace.local.executions import LocalExecutions
from headrace.local.faults import Faults
from headrace.local.fleets import LocalFleets
from headrace.local.interpreter import Interpreter
from headrace.local.loop_thread import LoopThread
from headrace.local.simulated.memory import MemoryObjects, MemoryRuns
from headrace.local.store import LocalRuns
from headrace.local.system import SystemClock, SystemEntropy
from headrace.ports import Bus, Executions, Fleets, Json, Nodes, Objects, Runs
from tests.aws.moto_stack import moto_stack
from tests.contract import aws
from tests.local.agents import launch_request, process_nodes, seeded
from tests.local.s3 import running_s3
from tests.local.test_documents import write_document
from tests.waiting import wait_until

Settle = Callable[[Callable[[], object]], None]
"""Lets the cloud's own time pass until a condition holds."""
BUCKET = "results"


@contextmanager
def local_runs() -> Iterator[Runs]:
    with tempfile.TemporaryDirectory() as folder, closing(LocalRuns(Path(folder) / "runs.sqlite3")) as runs:
        yield runs


@contextmanager
def memory_runs() -> Iterator[Runs]:
    yield MemoryRuns()


@contextmanager
def local_objects() -> Iterator[Objects]:
    with tempfile.TemporaryDirectory() as folder, running_s3(Path(folder)) as s3:
        yield s3.objects


@contextmanager
def memory_objects() -> Iterator[Objects]:
    yield MemoryObjects()


@dataclass(frozen=True)
class FleetsUnderTest:
    """Fleets, and a run that nobody else has."""

    fleets: Fleets
    run_id: str
    settle: Settle


@contextmanager
def local_fleets() -> Iterator[FleetsUnderTest]:
    with tempfile.TemporaryDirectory() as folder:
        driver = process_nodes(Path(folder))
        fleets = LocalFleets(Path(folder) / "fleets.sqlite3", driver, SystemClock(), seeded(os.getpid()), Faults())
        with closing(fleets), closing(driver):
            yield FleetsUnderTest(fleets, f"contract-{os.getpid()}", wait_until)


@contextmanager
def aws_fleets() -> Iterator[FleetsUnderTest]:
    with moto_stack() as stack:
        yield FleetsUnderTest(aws.cloud_of(stack).fleets, f"contract-{os.getpid()}", wait_until)


@dataclass(frozen=True)
class NodesUnderTest:
    """Two storage nodes of a run, and documents `succeeds` and `fails`."""

    nodes: Nodes
    run_id: str
    node_ids: frozenset[str]
    settle: Settle


@contextmanager
def local_nodes() -> Iterator[NodesUnderTest]:
    run_id = f"contract-{os.getpid()}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_document(folder, "succeeds", "true")
        write_document(folder, "fails", "echo broken; exit 4")
        driver = process_nodes(folder, PATH=os.environ["PATH"])
        fleets = LocalFleets(None, driver, SystemClock(), seeded(os.getpid()), Faults())
        documents = LocalDocuments(driver, fleets.list_nodes, SystemEntropy(), folder)
        with closing(fleets), closing(driver), closing(documents):
            launched = fleets.launch(launch_request(run_id, count=2)).nodes
            yield NodesUnderTest(documents, run_id, frozenset(node.node_id for node in launched), wait_until)


@contextmanager
def aws_nodes() -> Iterator[NodesUnderTest]:
    run_id = f"contract-{os.getpid()}"
    with moto_stack() as stack:
        cloud = aws.cloud_of(stack)
        launched = cloud.fleets.launch(launch_request(run_id, count=2)).nodes
        yield NodesUnderTest(cloud.nodes, run_id, frozenset(node.node_id for node in launched), wait_until)


@dataclass(frozen=True)
class ExecutionsUnderTest:
    """A machine `waits` whose one task waits for its token, and the tokens given out."""

    executions: Executions
    tokens: Sequence[str]
    settle: Settle


WAITS = {
    "QueryLanguage": "JSONata",
    "StartAt": "Wait",
    "States": {
        "Wait": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "TimeoutSeconds": 600,
            "Arguments": {"FunctionName": "Note", "Payload": {"token": "{% $states.context.Task.Token %}"}},
            "End": True,
        }
    },
}


@contextmanager
def local_executions() -> Iterator[ExecutionsUnderTest]:
    tokens: list[str] = []

    async def note(_function: str, payload: Json) -> Json:
        tokens.append(payload["token"])
        return {}

    async def put_events(_entries: list[dict[str, Json]]) -> dict[str, Json]:
        raise AssertionError("the machine puts no events")

    thread = LoopThread("interpreter")
    interpreter = Interpreter(
        {"waits": compile_machine("waits", WAITS)},
        invoke=note,
        put_events=put_events,
        loop=thread.loop,
        random=seeded(1),
    )
    thread.start()
    try:
        yield ExecutionsUnderTest(LocalExecutions(interpreter), tokens, wait_until)
    finally:
        thread.run(interpreter.shutdown())
        thread.stop()


@contextmanager
def aws_executions() -> Iterator[ExecutionsUnderTest]:
    with aws.executions() as (executions, tokens):
        yield ExecutionsUnderTest(executions, tokens, wait_until)


@dataclass(frozen=True)
class BusUnderTest:
    """A bus, and the envelopes that its targets received."""

    bus: Bus
    received: Sequence[dict[str, Any]]
    settle: Settle


@contextmanager
def local_bus() -> Iterator[BusUnderTest]:
    received: list[dict[str, Any]] = []
    yield BusUnderTest(LocalBus(received.append, SystemClock(), SystemEntropy()), received, wait_until)


@contextmanager
def aws_bus() -> Iterator[BusUnderTest]:
    with aws.bus() as (bus, received):
        yield BusUnderTest(bus, received, wait_until)


RUNS: dict[str, Callable[[], AbstractContextManager[Runs]]] = {
    "local": local_runs,
    "memory": memory_runs,
    "aws": aws.runs,
}
OBJECTS: dict[str, Callable[[], AbstractContextManager[Objects]]] = {
    "local": local_objects,
    "aws": lambda: aws.objects(BUCKET),
    "memory": memory_objects,
}
FLEETS: dict[str, Callable[[], AbstractContextManager[FleetsUnderTest]]] = {"local": local_fleets, "aws": aws_fleets}
NODES: dict[str, Callable[[], AbstractContextManager[NodesUnderTest]]] = {"local": local_nodes, "aws": aws_nodes}
EXECUTIONS: dict[str, Callable[[], AbstractContextManager[ExecutionsUnderTest]]] = {
    "local": local_executions,
    "aws": aws_executions,
}
BUSES: dict[str, Callable[[], AbstractContextManager[BusUnderTest]]] = {"local": local_bus, "aws": aws_bus}
