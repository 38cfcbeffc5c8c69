"""Runs on the simulated cloud, as many rooms' tests need them: a small catalog, a small job, one call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.domain.catalog import Catalog, MachineType, PriceList
from headrace.domain.receipt import Receipt
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._rows import read_nodes, read_run
from headrace.local.faults import Faults
from headrace.local.interpreter import ExecutionDescription
from headrace.local.simulated.prices import SimulatedPrices
from headrace.local.simulated.site import SETTINGS, SimulatedSite

SEED = int(os.environ.get("HEADRACE_SEED", "7"))
STORAGE_TYPES = {"i4i.large": 0.172, "i4i.xlarge": 0.343}
COMPUTE_TYPES = {"c7i.large": 0.089}
JOB: dict[str, Any] = {
    "name": "small",
    "data": {"source": "s3://data/set/"},
    "results": "s3://out/small/",
    "command": ["python", "train.py"],
    "compute": {"instance_type": "c7i.large"},
    "demand": {"read_bytes_per_s": 1_000_000},
    "storage": "fleet",
    "storage_nodes": 2,
}


def machine_type(name: str, disk_count: int) -> MachineType:
    """Return a type of the small catalog."""
    return MachineType(
        name=name,
        arch="x86_64",
        vcpus=2,
        memory_bytes=16 * 10**9,
        nic_bytes_per_s=10**8,
        disk_count=disk_count,
        disk_bytes=468 * 10**9 if disk_count else 0,
        ssd_read_bytes_per_s=3 * 10**8 * disk_count,
        ssd_write_bytes_per_s=2 * 10**8 * disk_count,
        accelerator=None,
        accelerators=0,
        ena_express=False,
        spot=True,
    )


def prices() -> SimulatedPrices:
    """Return the small catalog and its price list."""
    types = (*(machine_type(name, 1) for name in STORAGE_TYPES), *(machine_type(name, 0) for name in COMPUTE_TYPES))
    catalog = Catalog(region="us-east-1", dated="2026-01-01", types=types)
    on_demand = STORAGE_TYPES | COMPUTE_TYPES
    return SimulatedPrices(
        catalog, PriceList(region="us-east-1", dated="2026-01-01", on_demand=on_demand, spot_savings_percent={})
    )


@contextmanager
def simulated_site(
    seed: int = SEED, faults: Faults | None = None, files: int = 40, **switches: Any
) -> Iterator[SimulatedSite]:
    """Yield a simulated cloud that holds the small job's data set; the seed is printed for the log of a failure.

    `switches` take killers away: `has_rule`, `sweep_seconds`, `has_lease`.
    """
    print(f"seed {seed}")  # noqa: T201 - shown only when a test fails
    site = SimulatedSite(seed, prices(), faults, **switches)
    for number in range(files):
        site.objects.put("data", f"set/{number % 4}/{number:04d}.bin", bytes(100 + number))
    try:
        yield site
    finally:
        site.close()


def job(**changes: Any) -> dict[str, Any]:
    """Return an execution input that asks for the small job with some fields changed."""
    return {"job": {**JOB, **changes}}


def only_run(site: SimulatedSite) -> RunRow:
    """Return the row of the single run that the site knows."""
    (run_id,) = site.cloud.runs.run_ids()
    return read_run(site.cloud, run_id)


def nodes_of(site: SimulatedSite) -> tuple[NodeRow, ...]:
    """Return the node rows of the single run."""
    return read_nodes(site.cloud, only_run(site).run_id)


def receipt_of(site: SimulatedSite) -> Receipt:
    """Return the receipt of the single run."""
    key = only_run(site).report_key
    assert key is not None, "the run has not reported"
    return Receipt.model_validate_json(site.objects.get(SETTINGS.run_bucket, key))


def machines_alive(site: SimulatedSite) -> list[str]:
    """Return ids of the machines that are not terminated."""
    return [node.node_id for node in site.fleets.list_nodes() if node.life != "terminated"]


def events_of(site: SimulatedSite, role: str) -> list[str]:
    """Return the detail-types that the first node of the role sent, heartbeats left out."""
    (first, *_) = [node.node_id for node in nodes_of(site) if node.role == role]
    return [kind for node_id, kind in site.events if node_id == first and kind != "Telemetry Sampled"]


def failing_function(site: SimulatedSite, function: str, error: BaseException) -> None:
    """Make every invocation of the function fail with the error from now on."""
    invoke = site.invoke

    async def broken(name: str, payload: Any) -> Any:
        if name == function:
            raise error
        return await invoke(name, payload)

    site.invoke = broken


def start_until(site: SimulatedSite, phase: str, given: dict[str, Any] | None = None) -> str:
    """Start the small job and let time pass until the run has been in the phase for five seconds; return the ARN."""
    arn = site.cloud.executions.start("training_run", "run", given or job())
    for _ in range(3600):
        site.settle(1)
        if any(
            mark.name == phase for run_id in site.cloud.runs.run_ids() for mark in read_run(site.cloud, run_id).phases
        ):
            site.settle(5)
            return arn
    raise AssertionError(f"the run never came to the phase {phase}")


def ending_of(site: SimulatedSite, arn: str) -> ExecutionDescription:
    """Let the execution and all that it starts come to an end; return how it ended."""
    ended = site.loop.run_until_complete(site.interpreter.wait(arn))
    site.settle()
    return ended
