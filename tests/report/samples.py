"""A small run as models, for pages to show: two storage nodes, one compute node, 1,797 files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.domain.plan import (
    BindingLimit,
    DemandPlan,
    FleetPlan,
    OptionPlan,
    PhasePlan,
    Plan,
    Rejection,
    VolumePlan,
)
from headrace.domain.receipt import PhaseSpent, Receipt, ReleasedResource
from headrace.domain.run import NodeRow, PhaseMark, RunRow
from headrace.report.view import Snapshot

RUN_ID = "digits-3f2a90c1d4"
HOSTILE = "\x1b[31mred\x1b[0m [red]x[/red]\r\n\x07\u202etxt :smile:"


def at(second: float) -> str:
    return f"2026-11-30T02:00:{second:06.3f}Z"


def clock(second: float) -> datetime:
    return datetime(2026, 11, 30, 2, 0, tzinfo=UTC).replace(second=int(second), microsecond=int(second % 1 * 10**6))


def row(*phases: tuple[str, float], **changes: Any) -> RunRow:
    marks = tuple(PhaseMark.model_validate({"name": name, "at": at(second)}) for name, second in phases)
    known = {"run_id": RUN_ID, "job_name": "digits", "execution_arn": "arn:x", "trigger": "console"}
    files = {"dataset_files": 1797, "dataset_bytes": 134_775}
    times = {"started_at": at(1), "deadline_at": "2026-11-30T04:00:00.000Z"}
    return RunRow.model_validate({**known, **files, **times, "phases": marks, **changes})


def node(role: str, index: int, **changes: Any) -> NodeRow:
    kind, price = ("i4i.large", 0.172) if role == "storage" else ("c7i.large", 0.0893)
    place = {"run_id": RUN_ID, "node_id": f"i-{role}{index}0000000", "role": role, "attempt": 1, "index": index}
    machine = {"instance_type": kind, "zone": "us-east-1a", "address": "127.0.0.1", "usd_per_hour": price}
    return NodeRow.model_validate({**place, **machine, "launched_at": at(3), **changes})


def snapshot(run: RunRow, *nodes: NodeRow, second: float) -> Snapshot:
    return Snapshot(run, nodes, clock(second))


def fleet(role: str, instance_type: str, count: int, **changes: Any) -> FleetPlan:
    facts: dict[str, Any] = {"arch": "x86_64", "usd_per_hour_each": 0.172, "nic_bytes_per_s": 97_656_250}
    disks = {"disk_count": 1, "disk_bytes": 468_000_000_000}
    return FleetPlan.model_validate(
        {"role": role, "instance_type": instance_type, "count": count, **facts, **disks, **changes}
    )


def volume(index: int) -> VolumePlan:
    return VolumePlan(
        volume_id=f"data-{index}",
        kind="dataset",
        shape="spread",
        held_by="storage",
        hydrator_node_index=index,
        member_node_indexes=(index,),
        slices_per_member=1,
        stripe_unit_bytes=131_072,
        capacity_bytes=1_000_000_000,
    )


def option(storage: str, **changes: Any) -> OptionPlan:
    compute = fleet("compute", "c7i.large", 1, usd_per_hour_each=0.08925, disk_count=0, disk_bytes=0)
    phases = (
        PhasePlan(name="storage", eta_s=90, usd_per_hour=0.344, because="EC2 boots a machine in about 90 s"),
        PhasePlan(name="staging", eta_s=2.5, usd_per_hour=0.344, because="1,797 files, 250 a second and machine"),
        PhasePlan(name="training", eta_s=360, usd_per_hour=0.433, because="duration_hours is 0.1"),
        PhasePlan(name="ending", eta_s=30, usd_per_hour=0.344, because="terminate calls are accepted within seconds"),
    )
    known: dict[str, Any] = {
        "storage": storage,
        "fleets": (fleet("storage", "i4i.large", 2, fallback_types=("i3en.large", "i4g.large")), compute),
        "volumes": (volume(0), volume(1)),
        "fabric": "tcp",
        "queues_per_connection": 8,
        "phases": phases,
        "usd_per_hour": 0.43325,
        "usd_low": 0.0412,
        "usd_high": 0.0618,
        "usd_expected": 0.0413,
        "chance_of_loss": 0.0002,
        "limit": BindingLimit(
            name="compute NIC",
            offered=97_656_250,
            needed=50_000_000,
            unit="B/s",
            because="c7i.large sustains 0.781 Gbit/s, and one machine reads all of it",
        ),
        "reasons": ("the job asks for a fleet of 2 storage machines",),
    }
    return OptionPlan.model_validate({**known, **changes})


def plan() -> Plan:
    direct = option("direct", fleets=(fleet("compute", "c7i.large", 1),), volumes=(), fabric="none", reasons=())
    return Plan(
        job_name="digits",
        region="us-east-1",
        demand=DemandPlan(
            read_bytes_per_s=50_000_000,
            capacity_bytes=134_775,
            dataset_bytes=134_775,
            dataset_files=1797,
            basis="50 MB/s per machine, assumed since the job states none",
        ),
        chosen=option("fleet"),
        alternatives=(direct,),
        rejected=(Rejection(reason="has no local NVMe", candidates=512, example="m7i.large"),),
        assumptions=("an S3 prefix serves 5,500 GET requests a second",),
        catalog_date="2026-07-15",
    )


def resource(role: str, index: int, released: float | None, **changes: Any) -> ReleasedResource:
    machine = node(role, index)
    return ReleasedResource.model_validate(
        {
            "kind": "node",
            "resource_id": machine.node_id,
            "role": role,
            "instance_type": machine.instance_type,
            "launched_at": machine.launched_at,
            "released_at": None if released is None else at(released),
            "seconds_after_job_done": None if released is None else round(released - 20, 3),
            "usd": 0.0009,
            **changes,
        }
    )


def receipt(**changes: Any) -> Receipt:
    phases = (("storage", 2.0, 90.0), ("staging", 3.5, 2.5), ("training", 8.25, 360.0), ("ending", 0.8, 30.0))
    known: dict[str, Any] = {
        "run_id": RUN_ID,
        "job_name": "digits",
        "status": "SUCCEEDED",
        "reason": None,
        "started_at": at(1),
        "ended_at": at(22),
        "job_done_at": at(20),
        "resources": (resource("compute", 0, 20.25), resource("storage", 0, 21.5), resource("storage", 1, 21.5)),
        "phases": tuple(
            PhaseSpent(name=name, started_at=at(2), seconds=seconds, planned_seconds=planned)
            for name, seconds, planned in phases
        ),
        "estimated_usd_low": 0.0412,
        "estimated_usd_high": 0.0618,
        "usd": 0.0027,
        "results": f"s3://results-0a1b/{RUN_ID}/",
        "results_files": 2,
        "results_bytes": 39_594,
        "not_executed": ("format /dev/md/data-0 as XFS", "export 1 namespace over NVMe/TCP"),
    }
    return Receipt.model_validate({**known, **changes})
