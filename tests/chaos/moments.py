"""The moments at which one process of a run is killed: when each has come, and whom it hits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.watched_run import WatchedRun

ANY = frozenset({"SUCCEEDED", "FAILED"})
FAILED = frozenset({"FAILED"})


@dataclass(frozen=True)
class Moment:
    """One moment; `victims` are the processes of one kind, of which one is killed, and `ends` how the run may end."""

    name: str
    has_come: Callable[[WatchedRun], bool]
    victims: Callable[[WatchedRun, int], list[int]]
    ends: frozenset[str]
    job: dict[str, Any] = field(default_factory=dict)
    delay_seconds_max: float = 0.3
    """How much later a soak may kill; a moment that passes at once allows little."""

    @property
    def lends(self) -> bool:
        """Whether results are on a storage node, which saves what is left of them."""
        return self.job is LENT


def _in_phase(phase: str) -> Callable[[WatchedRun], bool]:
    return lambda run: run.phase() == phase


def _has_node(role: str, state: str) -> Callable[[WatchedRun], bool]:
    return lambda run: state in run.node_states(role)


def _stages(run: WatchedRun) -> bool:
    return run.has_task("compute", "stage-*.started") and not run.has_task("compute", "stage-*.outcome")


def _trains(run: WatchedRun) -> bool:
    return "training" in run.node_states("compute")


def _saves(run: WatchedRun) -> bool:
    return len(run.arrived()) > 2 and not run.listed_in_manifests()


def _has_written(run: WatchedRun) -> bool:
    return bool(run.written())


def _is_uploading(run: WatchedRun) -> bool:
    return any(0 < size < run.file_bytes for size in run.arriving())


def _is_saved(run: WatchedRun) -> bool:
    return bool(run.listed_in_manifests())


def _run(_run: WatchedRun, pid: int) -> list[int]:
    return [pid]


def _agent(role: str) -> Callable[[WatchedRun, int], list[int]]:
    return lambda run, _pid: run.agents(role)


def _trainer(run: WatchedRun, _pid: int) -> list[int]:
    return run.trainers()


def _server(run: WatchedRun, pid: int) -> list[int]:
    return run.servers(pid)


def _command(word: str) -> Callable[[WatchedRun, int], list[int]]:
    return lambda run, _pid: run.commands(word)


FLEET: dict[str, Any] = {"storage": "fleet", "compute": {"instance_type": "c7i.large"}}
LENT: dict[str, Any] = {
    "storage": "fleet",
    "storage_nodes": 2,
    "compute": {"instance_type": "c7i.4xlarge"},
    "demand": {"read_bytes_per_s": 500_000_000},
    "files": 12,
}
MUCH_DATA = {"data_files": 600}
AT_ONCE = 0.02
BIG_RESULTS = {"files": 2, "file_bytes": 60_000_000}
MANY_RESULTS = {"files": 150, "file_bytes": 20_000}

MOMENTS = (
    Moment("an agent before it is ready", _has_node("compute", "launched"), _agent("compute"), ANY),
    Moment("an agent after Node Ready", _has_node("compute", "ready"), _agent("compute"), ANY),
    Moment("the configure command of a document", _in_phase("compute"), _command("configure"), ANY),
    Moment("an agent while it stages", _stages, _agent("compute"), FAILED, MUCH_DATA),
    Moment("an agent while it trains", _trains, _agent("compute"), FAILED),
    Moment("an agent between its first saved result and its manifest", _saves, _agent("compute"), FAILED, MANY_RESULTS),
    Moment("an agent whose results are on a storage node", _has_written, _agent("compute"), FAILED, LENT),
    Moment("an agent between its manifest and Job Done", _is_saved, _agent("compute"), ANY, {}, AT_ONCE),
    Moment("a storage agent while others train", _trains, _agent("storage"), ANY, FLEET),
    Moment("the trainer as it starts", lambda run: bool(run.trainers()), _trainer, FAILED),
    Moment("the trainer after its last result", lambda run: len(run.written()) == 2, _trainer, ANY),
    Moment("the run's process while it plans", _in_phase("planning"), _run, FAILED, {}, AT_ONCE),
    Moment("the run's process while storage starts", _in_phase("storage"), _run, FAILED, FLEET),
    Moment("the run's process while it stages", _in_phase("staging"), _run, FAILED, MUCH_DATA),
    Moment("the run's process while compute starts", _in_phase("compute"), _run, FAILED),
    Moment("the run's process while it trains", _trains, _run, FAILED),
    Moment("the run's process while results are saved", _saves, _run, FAILED, MANY_RESULTS),
    Moment("the run's process while results are checked", _in_phase("collecting"), _run, FAILED, MANY_RESULTS, AT_ONCE),
    Moment("the run's process during decommission", _in_phase("ending"), _run, ANY, {}, AT_ONCE),
    Moment("the run's process while it reports", _in_phase("ended"), _run, ANY, {}, AT_ONCE),
    Moment("the S3 server while nodes stage", _stages, _server, ANY, MUCH_DATA),
    Moment("the S3 server while they train", _trains, _server, ANY),
    Moment("the S3 server while results are saved", _saves, _server, ANY, MANY_RESULTS),
    Moment("the S3 server in the middle of a big result", _is_uploading, _server, ANY, BIG_RESULTS, AT_ONCE),
    Moment("the run's process in the middle of a big result", _is_uploading, _run, FAILED, BIG_RESULTS, AT_ONCE),
    Moment("the S3 server during decommission", _in_phase("ending"), _server, ANY, {}, AT_ONCE),
)
