"""Handlers get the events that the rules name, are tried again when they fail, and never fail in silence."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.errors import EventRefused
from headrace.local import deliveries as module
from headrace.local.asl.arns import execution_arn, machine_arn
from headrace.local.deliveries import Deliveries, target_of
from headrace.local.journal import Journal
from headrace.local.loop_thread import LoopThread
from headrace.local.system import SystemClock
from tests.waiting import wait_until

AGENT_EVENT = {"source": "headrace.agent", "id": "1", "detail": {"run_id": "job-1"}}


def status_event(status: str, machine: str = "training_run") -> dict[str, Any]:
    detail = {
        "executionArn": execution_arn(machine, "e"),
        "stateMachineArn": machine_arn(machine),
        "status": status,
    }
    return {"source": "aws.states", "id": "2", "detail": detail}


@pytest.mark.parametrize(
    ("event", "target"),
    [
        (AGENT_EVENT, "OnAgentEvent"),
        (status_event("FAILED"), "OnExecutionStatus"),
        (status_event("TIMED_OUT"), "OnExecutionStatus"),
        (status_event("ABORTED"), "OnExecutionStatus"),
        (status_event("SUCCEEDED"), None),
        (status_event("RUNNING"), None),
        (status_event("FAILED", "decommission"), None),
        ({"source": "headrace.run", "detail": {}}, None),
    ],
)
def test_the_rules_of_the_bus(event: dict[str, Any], target: str | None) -> None:
    assert target_of(event) == target


class Scripted:
    """Deliveries whose handlers are those of a test."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor, thread: LoopThread) -> None:
        self.steps: dict[str, Callable[[Any, Any], Any]] = {}
        self.calls: Counter[str] = Counter()
        self.logs = folder
        self.thread = thread
        journal = Journal(folder, SystemClock())
        self.deliveries = Deliveries(thread.loop, pool, lambda: None, journal)  # type: ignore[arg-type,return-value]

    def handler(self, name: str) -> Callable[[Any, Any], Any]:
        def step(request: Any, cloud: Any) -> Any:
            self.calls[name] += 1
            return self.steps[name](request, cloud)

        return step

    def log(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    thread, pool = LoopThread("test"), ThreadPoolExecutor(4)
    made = Scripted(tmp_path, pool, thread)
    monkeypatch.setattr(module, "handler", made.handler)
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.0, 0.0))
    thread.start()
    yield made
    thread.cancel_work()
    pool.shutdown()
    thread.stop()


def test_a_state_s_handler_gives_its_answer(scripted: Scripted) -> None:
    scripted.steps["PlanLayout"] = lambda request, _cloud: {"seen": request}
    assert scripted.thread.run(scripted.deliveries.invoke("PlanLayout", {"run_id": "job-1"}), 20) == {
        "seen": {"run_id": "job-1"}
    }


def test_what_a_state_s_handler_raises_is_logged_and_raised(scripted: Scripted) -> None:
    def fails(_request: Any, _cloud: Any) -> Any:
        raise RuntimeError("disk on fire")

    scripted.steps["PlanLayout"] = fails
    with pytest.raises(RuntimeError, match="disk on fire"):
        scripted.thread.run(scripted.deliveries.invoke("PlanLayout", {"run_id": "job-1"}), 20)
    assert "PlanLayout: RuntimeError: disk on fire" in scripted.log("job-1")
    assert scripted.calls["PlanLayout"] == 1, "retries of a state are the machine's business"


def test_an_event_s_handler_is_tried_twice_more(scripted: Scripted) -> None:
    done = threading.Event()

    def succeeds_at_last(_request: Any, _cloud: Any) -> Any:
        if scripted.calls["OnAgentEvent"] < 3:
            raise RuntimeError("not yet")
        done.set()

    scripted.steps["OnAgentEvent"] = succeeds_at_last
    scripted.deliveries.deliver(dict(AGENT_EVENT))
    assert done.wait(20)
    assert scripted.log("job-1").count("RuntimeError: not yet\n") == 4, "twice each: the line and its trace"
    assert "gave up" not in scripted.log("job-1")


def test_an_event_is_given_up_in_words(scripted: Scripted) -> None:
    scripted.steps["OnAgentEvent"] = lambda request, _cloud: request["missing"]
    scripted.deliveries.deliver(dict(AGENT_EVENT))
    wait_until(lambda: "gave up event 1 after 3 attempts" in scripted.log("job-1"))
    assert scripted.calls["OnAgentEvent"] == 3


def test_a_refused_event_is_noted_and_not_tried_again(scripted: Scripted) -> None:
    def refuses(_request: Any, _cloud: Any) -> Any:
        raise EventRefused("the signature is not that of node i-1")

    scripted.steps["OnAgentEvent"] = refuses
    scripted.deliveries.deliver(dict(AGENT_EVENT))
    wait_until(lambda: "refused event 1: the signature" in scripted.log("site"))
    assert scripted.calls["OnAgentEvent"] == 1


def test_an_execution_has_settled_when_what_its_end_started_is_closed(scripted: Scripted) -> None:
    event, closing = status_event("FAILED"), threading.Event()
    arn = event["detail"]["executionArn"]
    closed: list[str] = []

    async def until_closed(started: str) -> None:
        await scripted.thread.loop.run_in_executor(None, closing.wait)
        closed.append(started)

    scripted.steps["OnExecutionStatus"] = lambda _request, _cloud: {"started": "arn:clean-up"}
    scripted.deliveries.until_closed = until_closed
    assert scripted.deliveries.is_settled(arn)
    scripted.thread.loop.call_soon_threadsafe(scripted.deliveries.on_status, event)
    wait_until(lambda: scripted.calls["OnExecutionStatus"] == 1)
    assert not scripted.deliveries.is_settled(arn)
    closing.set()
    scripted.thread.run(scripted.deliveries.settled(arn), 20)
    assert closed == ["arn:clean-up"]
    assert scripted.deliveries.is_settled(arn)
