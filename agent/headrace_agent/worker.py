"""Takes tasks from the spool, one at a time, and reports how each ended exactly as it was decided."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from headrace_agent.node import Node
from headrace_agent.reporter import Say
from headrace_agent.spool import Outcome, Spool, Task
from headrace_agent.text import short
from headrace_agent.work import StopSign, Work

LOG = logging.getLogger(__name__)
Runner = Callable[[Work], Outcome | None]
ACTIVITIES = {"stage": "staging", "train": "training", "salvage": "salvaging"}

OWN_STOP_SECONDS = 60.0
"""What a task may take to stop besides the graces that the job has."""


def stop_seconds(task: Task) -> float:
    """Return how long the task may take to stop: a job its grace, and the grace for its results."""
    train = task.config.train if task.kind == "train" else None
    return OWN_STOP_SECONDS + (train.stop_grace_seconds + train.results_grace_seconds if train else 0.0)


def failure_of(kind: str, reason: str) -> Outcome:
    """Return the outcome of a task of that kind that failed for the reason."""
    if kind == "salvage":
        return Outcome("Results Salvaged", {"ranks": [], "files": 0, "bytes": 0, "trouble": reason})
    return Outcome("Dataset Failed" if kind == "stage" else "Job Failed", {"reason": reason})


class Worker:
    """Runs at most one task, in a thread; `activity` says which kind."""

    def __init__(self, node: Node, spool: Spool, say: Say, runners: Mapping[str, Runner]) -> None:
        self.activity = "idle"
        self.heartbeat_seconds = node.idle_heartbeat_seconds
        self._node = node
        self._spool = spool
        self._say = say
        self._runners = runners
        self._stop = StopSign()
        self._stop_seconds = 0.0
        self._thread: threading.Thread | None = None

    def tend(self) -> None:
        """Start the next task when none runs."""
        if self._thread and self._thread.is_alive():
            return
        task = self._spool.next_task()
        if task is None:
            return
        self.activity = ACTIVITIES.get(task.kind, "idle")
        self.heartbeat_seconds = task.config.heartbeat_seconds
        self._stop_seconds = stop_seconds(task)
        self._thread = threading.Thread(target=self._run, args=(task,), name=task.kind, daemon=True)
        self._thread.start()

    def stop(self, reason: str) -> bool:
        """Tell the task why to stop and wait for as long as its own graces allow. Return whether none runs any more."""
        self._stop.raise_for(reason)
        if self._thread is None:
            return True
        self._thread.join(self._stop_seconds)
        return not self._thread.is_alive()

    def _run(self, task: Task) -> None:
        try:
            self._report(task, self._spool.outcome(task) or self._decide(task))
        finally:
            self.activity = "idle"

    def _decide(self, task: Task) -> Outcome | None:
        was_interrupted = not self._spool.start(task)
        try:
            outcome = self._runners[task.kind](Work(self._node, task, self._say, self._stop, was_interrupted))
        except Exception as error:
            LOG.exception("task %s failed", task.task_id)
            reason = short(f"the agent failed: {type(error).__name__}: {error}")
            outcome = failure_of(task.kind, reason)
        if outcome:
            self._spool.decide(task, outcome)
        return outcome

    def _report(self, task: Task, outcome: Outcome | None) -> None:
        """Report, then mark as done; a task that was only stopped stays, for the next agent to go on with."""
        if outcome is None:
            return
        self._say(outcome.detail_type, outcome.body)
        self._spool.finish(task)
