"""Every kind of fault that a simulated run may meet, where it fits, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from headrace.local.simulated.fault_plan import Fault


class Row(NamedTuple):
    """One kind of fault at some places.

    `calls` is how many calls of the place a good run makes, about; a draw strikes one of them.
    """

    kind: str
    places: Sequence[str]
    calls: int
    values: Sequence[int] = (0,)
    seconds: Sequence[float] = (0.0,)
    weight: float = 1.0


_FUNCTIONS = (
    *("AdmitRun", "InspectDataset", "PlanLayout", "LaunchFleet", "CheckNodes", "ConfigureNodes", "CheckConfiguration"),
    *("ReplaceNodes", "StageDataset", "TrainJob", "ReleaseCompute", "CollectResults"),
    *("MarkTombstone", "TerminateNodes", "ConfirmTerminated", "ReleaseRest", "ReportRun"),
)
_INVOKED = tuple(f"invoke.{name}" for name in _FUNCTIONS)
_OF_A_RUN = tuple(place for place in _INVOKED if place != "invoke.AdmitRun")
_WORDS = ("Node Ready", "Node Configured", "Dataset Staged", "Job Started", "Job Done", "Node Leaving")
_EVENTS = tuple(f"event.{name}" for name in (*_WORDS, "Telemetry Sampled", "Job Progress"))
_ANSWERED = tuple(
    f"event.{name}" for name in (*_WORDS[:4], "Dataset Staged", "Job Done", "Job Done", "Telemetry Sampled")
)
"""What is of consequence when its handler dies, the more so between its record and its effect, the fifth call."""
_ENDS = ("status.FAILED", "status.ABORTED")
_FLEETS = ("fleets.launch", "fleets.terminate", "fleets.list_nodes")
_NODES = ("nodes.online", "nodes.send", "nodes.command_status")
_OBJECTS = ("objects.get", "objects.put", "objects.head", "objects.delete", "objects.page")
_RUNS = ("runs.insert", "runs.read", "runs.update", "runs.items")
_EXECUTIONS = ("executions.start", "executions.succeed", "executions.fail", "executions.heartbeat")
CALLS = (*_FLEETS, *_NODES, *_OBJECTS, *_RUNS, *_EXECUTIONS, "bus.put")
_OFTEN = ("objects.get", "objects.put", "runs.read", "runs.update", "runs.insert", "runs.items")

DRAWN: Sequence[Row] = (
    *(Row("throttled", (place,), 60 if place in _OFTEN else 6, (3, 9)) for place in CALLS),
    *(
        Row(kind, (place,), 60 if place in _OFTEN else 6, weight=0.5)
        for kind in ("error_before", "error_after", "killed_before", "killed_after", "sent_twice", "twin")
        for place in CALLS
    ),
    Row("stopped", (*_FLEETS, *_NODES, *_OFTEN), 20, weight=2),
    Row("overtaken", (*_FLEETS, *_NODES, *_OFTEN), 20, weight=2),
    Row("slow", _OBJECTS, 8, seconds=(5.0, 50.0, 90.0), weight=2),
    Row("denied", _OBJECTS, 8, weight=2),
    Row("gone", ("objects.get", "objects.head"), 12, weight=2),
    Row("no_capacity", ("fleets.launch",), 2, (0, 1), weight=3),
    Row("partial", ("fleets.launch",), 2, (1,), weight=3),
    Row("quota", ("fleets.launch",), 2, weight=2),
    Row("vanishing", ("fleets.launch",), 2, weight=2),
    Row("hidden", ("fleets.launch",), 2, seconds=(20.0, 90.0, 300.0), weight=3),
    Row("adrift", ("fleets.launch",), 2, seconds=(90.0, 300.0), weight=3),
    Row("no_address", ("fleets.list_nodes",), 4, seconds=(30.0, 120.0), weight=2),
    Row("slow_to_go", ("fleets.terminate",), 3, seconds=(60.0, 240.0), weight=4),
    Row("terminate_denied", ("fleets.terminate",), 2, seconds=(30.0, 300.0, 0.0), weight=2),
    Row("unregistered", ("nodes.online",), 4, seconds=(60.0, 240.0, 900.0), weight=2),
    Row("never_ran", ("nodes.send",), 4, weight=2),
    Row("undeliverable", ("nodes.send",), 4, weight=2),
    Row("delivery_timed_out", ("nodes.send",), 4, seconds=(60.0, 300.0), weight=2),
    Row("empty", ("nodes.command_status",), 3, weight=2),
    Row("failed", ("nodes.command_status",), 3, weight=2),
    *(Row(kind, _INVOKED, 2, weight=4) for kind in ("not_run", "throttled", "unreachable", "timed_out", "twice")),
    Row("late", _INVOKED, 2, seconds=(10.0, 200.0), weight=2),
    Row("late", ("invoke.LaunchFleet",), 2, seconds=(200.0,), weight=4),
    Row("paused", _INVOKED, 2, tuple(range(1, 13)), seconds=(20.0, 50.0), weight=6),
    Row("dies", _INVOKED, 2, tuple(range(1, 13)), weight=4),
    Row("overlapped", _INVOKED, 2, tuple(range(1, 13)), weight=6),
    Row("paused", ("sweep",), 3, (1, 2, 3, 4), seconds=(20.0, 50.0), weight=8),
    Row("overlapped", ("sweep",), 4, (1, 2, 3, 4, 6), weight=2),
    Row("dies", ("sweep",), 4, (1, 2, 3, 4, 6)),
    Row("untagged", ("sweep",), 4, seconds=(60.0, 110.0), weight=3),
    Row("stale", ("executions.is_running",), 4, weight=3),
    Row("stop", _OF_A_RUN, 2, weight=6),
    Row("second_decommission", _INVOKED[-5:], 1, weight=3),
    Row("lost", _EVENTS, 3, weight=6),
    Row("doubled", _EVENTS, 3, (2, 5), seconds=(0.0, 7.0, 200.0, 600.0), weight=4),
    Row("paused", _EVENTS, 3, tuple(range(1, 10)), seconds=(20.0, 50.0), weight=3),
    Row("dies", _ANSWERED, 3, (1, 3, 4, 5, 5, 5, 6, 7, 9), weight=4),
    Row("late", _EVENTS, 3, seconds=(3.0, 45.0, 600.0, 7200.0), weight=6),
    Row("forged", _EVENTS, 3, seconds=(0.0, 20.0), weight=2),
    Row("lost", _ENDS, 1, weight=2),
    Row("doubled", _ENDS, 1, (2,), seconds=(0.0, 30.0)),
    Row("late", _ENDS, 1, seconds=(60.0, 1200.0)),
    Row("spot", ("machine",), 4, (0, 1), seconds=(5.0, 60.0, 120.0, 200.0, 260.0, 320.0), weight=8),
    Row("rack", ("machine",), 3, (2, 3), seconds=(60.0, 120.0, 150.0), weight=3),
    Row("no_boot", ("machine",), 4, weight=3),
    Row("crash", ("machine",), 3, seconds=(61.0, 90.0, 120.0, 150.0, 180.0, 220.0), weight=9),
    Row("restart", ("machine",), 4, seconds=(61.0, 90.0, 120.0, 150.0, 240.0), weight=3),
    Row("hang", ("machine",), 4, weight=3),
    Row("damaged", ("machine",), 4, (0, 1, 2), weight=6),
    Row("full_disk", ("machine",), 4, weight=2),
    Row("half_upload", ("machine",), 4, weight=2),
    Row("cannot_save", ("machine",), 4, weight=2),
    Row("cannot_stage", ("machine",), 4, weight=2),
    Row("skew", ("machine",), 4, (-1200, 1200), weight=3),
    Row("exit", ("machine",), 4, (1, 137), weight=3),
    Row("changed", ("bucket",), 1, (0, 5), seconds=(1.0, 40.0), weight=2),
    Row("removed", ("bucket",), 1, (0, 5), seconds=(1.0, 40.0)),
    Row("archived", ("bucket",), 1, (0, 5), seconds=(0.0, 40.0), weight=2),
    Row("stop", ("control",), 1, seconds=(1.0, 20.0, 60.0, 100.0, 140.0, 180.0, 260.0, 400.0), weight=4),
    Row("abort", ("control",), 1, seconds=(1.0, 20.0, 60.0, 100.0, 140.0, 180.0, 260.0, 400.0), weight=4),
    Row("echoed", ("control",), 1, seconds=(20.0, 400.0, 400.0, 400.0), weight=12),
    Row("outage", ("control",), 1, (10, 180), seconds=(5.0, 40.0, 90.0, 150.0, 250.0, 400.0), weight=6),
    Row("functions_dead", ("control",), 1, (2, 60), seconds=(5.0, 40.0, 90.0, 150.0, 250.0, 400.0), weight=4),
    Row("duplicate_trigger", ("control",), 1, seconds=(0.0, 1.0, 100.0, 900.0), weight=4),
)
_MACHINE_EVENTS = ("machine.shutting-down", "machine.terminated", "machine.interrupted")
OF_MACHINE_EVENTS: Sequence[Row] = (
    Row("lost", _MACHINE_EVENTS, 4, weight=2),
    Row("doubled", _MACHINE_EVENTS, 4, (2, 4), seconds=(0.0, 7.0, 200.0)),
    Row("late", _MACHINE_EVENTS, 4, seconds=(3.0, 45.0, 600.0)),
    Row("paused", _MACHINE_EVENTS, 4, tuple(range(1, 7)), seconds=(20.0, 50.0)),
    Row("dies", _MACHINE_EVENTS, 4, tuple(range(1, 7)), weight=2),
)
"""What befalls the cloud's own events, drawn apart from the others so that older seeds keep what they stand for."""
_SALVAGE = ("invoke.FenceCompute", "invoke.SaveLeftResults")
OF_SALVAGE: Sequence[Row] = (
    *(Row(kind, _SALVAGE, 2, weight=2) for kind in ("not_run", "throttled", "unreachable", "timed_out", "twice")),
    Row("late", _SALVAGE, 1, seconds=(10.0, 200.0)),
    Row("paused", _SALVAGE, 1, tuple(range(1, 13)), seconds=(20.0, 50.0), weight=3),
    Row("dies", _SALVAGE, 1, tuple(range(1, 13)), weight=3),
    Row("overlapped", _SALVAGE, 1, tuple(range(1, 13)), weight=3),
    Row("stop", _SALVAGE, 1, weight=3),
    Row("lost", ("event.Results Salvaged",), 2, weight=3),
    Row("doubled", ("event.Results Salvaged",), 2, (2, 5), seconds=(0.0, 200.0), weight=2),
    Row("late", ("event.Results Salvaged",), 2, seconds=(3.0, 600.0), weight=2),
    Row("paused", ("event.Results Salvaged",), 2, tuple(range(1, 10)), seconds=(20.0, 50.0), weight=2),
    Row("dies", ("event.Results Salvaged",), 2, (1, 3, 4, 5, 5, 5, 6, 7, 9), weight=2),
    Row("forged", ("event.Results Salvaged",), 2, seconds=(0.0, 20.0)),
)
"""What befalls the saving of what lost machines left, drawn apart for the same reason."""
TABLE: Sequence[Row] = (*DRAWN, *OF_MACHINE_EVENTS, *OF_SALVAGE)


def draw_faults(source: Random, mean: float, rows: Sequence[Row] = DRAWN) -> tuple[Fault, ...]:
    """Return a number of faults that is geometrically distributed about the mean, each drawn from these rows."""
    faults = []
    weights = [row.weight for row in rows]
    while source.random() < mean / (1 + mean):
        (row,) = source.choices(rows, weights)
        faults.append(
            Fault(
                row.kind,
                source.choice(row.places),
                source.randint(1, row.calls),
                source.choice(row.values),
                source.choice(row.seconds),
            )
        )
    return tuple(faults)
