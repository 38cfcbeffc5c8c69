"""The replay of published results as a page: demand beside measurement, plans per count, and the largest run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from headrace.domain.catalog import GB
from headrace.domain.largest_run import LargestRunReplay
from headrace.domain.replay import OUTLIER, Replay, ReplayedRow
from headrace.domain.replay_plans import PlannedCount
from headrace.report.cells import bullets, cell, facts, section, table
from headrace.report.quantities import count_text, usd_text


def replay_page(found: Replay) -> RenderableType:
    """Return the whole replay, ready to print."""
    return Group(*_parts(found))


def _parts(found: Replay) -> Iterator[RenderableType]:
    yield cell(f"replay of {count_text(len(found.rows), 'published row')}", "bold")
    yield cell(f"{found.source} ({found.licence})", "dim")
    yield section("demand from first principles beside what was measured", _rows(found.rows))
    yield section("error by workload", _errors(found))
    yield section(f"rows off by more than {OUTLIER:.0%}", bullets(_outlier_lines(found)))
    yield section("what headrace would launch", _plans(found.plans))
    refused = [one for one in found.plans if one.refused]
    if refused:
        yield section(
            "refused with one interface for each machine, which is what plans count on",
            bullets(_refusal_lines(refused)),
        )
    yield section("the largest public run", _largest(found.largest))
    yield section("its storage, chosen by headrace for the reads of its slower row", _figures(found.largest))
    yield section("sensitivity to the share of a NIC that NVMe/TCP carries", _sensitivity(found.largest))


def _rows(rows: tuple[ReplayedRow, ...]) -> Table:
    numbers = ("count", "busy", "demand GB/s", "measured GB/s", "error")
    made = table("submitter", "workload", "on", *numbers, right=numbers)
    for row in rows:
        rates = (f"{one / GB:,.2f}" for one in (row.derived_bytes_per_s, row.measured_bytes_per_s))
        amounts = (f"{row.accelerators:,}", f"{row.busy_share:.1%}", *rates, f"{row.error:+.1%}")
        made.add_row(*map(cell, (row.submitter, row.workload, row.accelerator, *amounts)))
    return made


def _errors(found: Replay) -> Table:
    made = table("workload", "rows", "median", "worst", right=("rows", "median", "worst"))
    for one in found.errors:
        made.add_row(one.workload, str(one.rows), f"{one.median_error:.1%}", f"{one.worst_error:.1%}")
    return made


def _outlier_lines(found: Replay) -> Iterator[str]:
    for one in found.outliers:
        on = f"{one.workload} on {one.accelerators} {one.accelerator}"
        yield f"{one.submitter}, {on}: {one.error:+.1%} ({one.system})"
    if not found.outliers:
        yield "none"


def _plans(plans: tuple[PlannedCount, ...]) -> Table:
    numbers = ("count", "USD/h each")
    made = table("workload", "on", *numbers, "storage", "machines", "bound by", right=numbers)
    for one in plans:
        if one.limit is None or one.usd_per_accelerator_hour is None:
            continue
        amounts = (f"{one.accelerators:,}", f"{one.usd_per_accelerator_hour:.3f}")
        limit = f"{one.limit.name}: {one.limit.needed / one.limit.offered:.1%} of it needed"
        wider = f" (with {one.interfaces} interfaces each)" if one.interfaces > 1 else ""
        machines = ", ".join(one.machines) + wider
        made.add_row(*map(cell, (one.workload, one.accelerator, *amounts, one.storage, machines, limit)))
    return made


def _refusal_lines(refused: list[PlannedCount]) -> Iterator[str]:
    kinds: dict[tuple[str, str], list[PlannedCount]] = {}
    for one in refused:
        kinds.setdefault((one.workload, one.accelerator), []).append(one)
    for (workload, accelerator), those in kinds.items():
        counts = ", ".join(f"{one.accelerators:,}" for one in those)
        yield f"{workload} on {counts} {accelerator}; the last because {those[-1].refused}"


def _largest(run: LargestRunReplay) -> Table:
    measured = " and ".join(f"{one / GB:,.1f} GB/s" for one in run.measured_bytes_per_s)
    above = run.capacity_bytes_per_s / max(run.measured_bytes_per_s) - 1
    return facts(
        [
            ("storage", f"{run.storage} of {run.submitter}: {usd_text(run.own_usd_per_hour)}/h on demand"),
            ("measured", f"{measured} in its two published rows"),
            ("capacity", f"{run.capacity_bytes_per_s / GB:,.1f} GB/s modelled, {above:+.2%} against the faster row"),
            ("", f"{run.capacity_basis}: calibrated on that row, so this checks consistency and predicts nothing"),
        ]
    )


def _figures(run: LargestRunReplay) -> Table:
    numbers = ("per hour", "of its bill")
    made = table("storage", "machines", *numbers, right=numbers)
    for one in run.figures:
        made.add_row(*map(cell, (one.condition, one.machines, usd_text(one.usd_per_hour), f"{one.share_of_bill:.1%}")))
    return made


def _sensitivity(run: LargestRunReplay) -> Table:
    numbers = ("share", "own capacity", "per hour", "of its bill")
    made = table(*numbers, "cheapest", right=numbers)
    for one in run.sensitivity:
        best = one.cheapest
        amounts = (
            f"{one.nic_fraction:.1%}",
            f"{one.own_capacity_bytes_per_s / GB:,.1f} GB/s",
            usd_text(best.usd_per_hour),
        )
        made.add_row(*map(cell, (*amounts, f"{best.share_of_bill:.1%}", best.machines)))
    return made
