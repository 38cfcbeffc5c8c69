"""The plan as a page: what is launched, how long it takes, what it costs, what binds and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from headrace.domain.plan import FleetPlan, OptionPlan, Plan, VolumePlan
from headrace.domain.receipt import ESTIMATE_NOTE
from headrace.report.cells import bullets, cell, facts, section, table
from headrace.report.quantities import bytes_text, count_text, duration_text, rate_text, usd_text

STORAGE_WORDS = {
    "fleet": "storage machines hold the data set and serve it to the machines that train",
    "local": "no storage machines: the machines that train hold the data set on their own NVMe",
    "direct": "no storage machines: the command reads from S3 itself",
}


def plan_page(plan: Plan) -> RenderableType:
    """Return the whole plan, ready to print."""
    return Group(*_parts(plan))


def _parts(plan: Plan) -> Iterator[RenderableType]:
    chosen = plan.chosen
    yield cell(f"plan for {plan.job_name} in {plan.region}", "bold")
    yield cell(f"{chosen.storage}: {STORAGE_WORDS[chosen.storage]}")
    yield section("demand", _demand(plan))
    yield section("machines", _machines(chosen))
    if chosen.volumes:
        yield section("layout", bullets(_volume_lines(chosen)))
    yield section("phases", _phases(chosen))
    yield section("cost", _cost(chosen))
    yield section("binding limit", _limit(chosen))
    if chosen.reasons:
        yield section("why", bullets(chosen.reasons))
    if plan.assumptions:
        yield section("assumed", bullets(plan.assumptions))
    if plan.alternatives:
        yield section("would also work", _alternatives(plan))
    if plan.regions:
        yield section("data and machines in different regions", _regions(plan))
    if plan.comparisons:
        yield section("for comparison, never chosen", _comparisons(plan))
    if plan.rejected:
        yield section("rejected", bullets(_rejection_lines(plan)))
    yield ""
    yield cell(f"{ESTIMATE_NOTE} Catalog of {plan.catalog_date}.", "dim")


def _demand(plan: Plan) -> Table:
    demand = plan.demand
    data = f"{count_text(demand.dataset_files, 'file')}, {bytes_text(demand.dataset_bytes)}"
    pairs = [("data set", data), ("to read", rate_text(demand.read_bytes_per_s)), ("because", demand.basis)]
    if demand.reads_per_s:
        pairs.insert(2, ("in reads of", f"{bytes_text(demand.read_request_bytes)}, {demand.reads_per_s:,} a second"))
    if demand.checkpoint_bytes:
        each = duration_text(demand.checkpoint_period_s)
        pairs.append(("checkpoints", f"{bytes_text(demand.checkpoint_bytes)} every {each}"))
    return facts(pairs)


def _machines(chosen: OptionPlan) -> Table:
    made = table("role", "count", "type", "each", "NVMe", "NIC", right=("count", "each"))
    for fleet in chosen.fleets:
        kind = fleet.instance_type + (" (spot)" if fleet.market == "spot" else "")
        row = (fleet.role, f"{fleet.count:,}", kind, f"{usd_text(fleet.usd_per_hour_each)}/h", _disks(fleet))
        made.add_row(*(cell(text) for text in (*row, f"{fleet.nic_bytes_per_s * 8 / 1e9:.4g} Gbit/s")))
        if fleet.fallback_types:
            made.add_row("", "", cell("or " + ", ".join(fleet.fallback_types), "dim"))
    return made


def _disks(fleet: FleetPlan) -> str:
    return f"{fleet.disk_count} x {bytes_text(fleet.disk_bytes)}" if fleet.disk_count else "none"


def _volume_lines(chosen: OptionPlan) -> Iterator[str]:
    for (kind, words), count in Counter((one.kind, _volume_words(one)) for one in chosen.volumes).items():
        yield f"{count_text(count, f'{kind} volume')} of {words}"
    if chosen.fabric != "none":
        queues = count_text(chosen.queues_per_connection, "queue")
        yield f"served over NVMe/{chosen.fabric.upper()}, {queues} per connection"


def _volume_words(volume: VolumePlan) -> str:
    members = count_text(len(volume.member_node_indexes), "machine")
    stripe = f"{volume.shape} over {members} x {count_text(volume.slices_per_member, 'slice')}"
    mirror = ", with a second copy on another machine" if volume.mirror_node_indexes else ""
    where = f"held by {volume.held_by}{mirror}, stripe unit {volume.stripe_unit_bytes // 1024} KiB"
    return f"{bytes_text(volume.capacity_bytes)}: XFS, {stripe}, {where}"


def _phases(chosen: OptionPlan) -> Table:
    made = table("phase", "takes", "bills", "because", right=("takes", "bills"))
    for phase in chosen.phases:
        row = (phase.name, duration_text(phase.eta_s), f"{usd_text(phase.usd_per_hour)}/h", phase.because)
        made.add_row(*(cell(text) for text in row))
    made.add_row("in all", duration_text(sum(phase.eta_s for phase in chosen.phases)))
    return made


def _cost(chosen: OptionPlan) -> Table:
    return facts(
        [
            ("per hour", f"{usd_text(chosen.usd_per_hour)} while the job trains"),
            ("this run", f"{usd_text(chosen.usd_low)} to {usd_text(chosen.usd_high)}"),
            (
                "on average",
                f"{usd_text(chosen.usd_expected)}; a machine is lost with {chosen.chance_of_loss:.2%} chance",
            ),
            *([("of that", f"{usd_text(chosen.transfer_usd)} between regions")] if chosen.transfer_usd else []),
        ]
    )


def _limit(chosen: OptionPlan) -> Table:
    limit = chosen.limit
    offered = f"offers {_amount(limit.offered, limit.unit)}, needed {_amount(limit.needed, limit.unit)}"
    pairs = [(limit.name, offered), ("", limit.because)]
    return facts([*pairs, ("next cheaper", chosen.next_cheaper)] if chosen.next_cheaper else pairs)


def _amount(amount: float, unit: str) -> str:
    if unit in ("B/s", "bytes/s"):
        return rate_text(amount)
    if unit in ("B", "bytes"):
        return bytes_text(amount)
    return f"{amount:,.4g} {unit}"


def _alternatives(plan: Plan) -> Table:
    made = table("storage", "machines", "per hour", "this run", "bound by", right=("per hour",))
    for option in plan.alternatives:
        machines = ", ".join(f"{fleet.count:,} {fleet.instance_type}" for fleet in option.fleets)
        cost = f"{usd_text(option.usd_low)} to {usd_text(option.usd_high)}"
        row = (option.storage, machines, usd_text(option.usd_per_hour), cost, option.limit.name)
        made.add_row(*(cell(text) for text in row))
    return made


def _regions(plan: Plan) -> Table:
    numbers = ("this run", "moved once", "each epoch")
    made = table("way", "machines in", *numbers, "because", right=numbers)
    for one in plan.regions:
        run = usd_text(one.usd_low) if one.usd_low is not None else "-"
        amounts = (run, usd_text(one.transfer_usd), usd_text(one.transfer_usd_per_epoch))
        made.add_row(*(cell(text) for text in (one.way, one.region, *amounts, one.because)))
    return made


def _comparisons(plan: Plan) -> Group:
    numbers = ("per hour", "this run")
    made = table("instead of the storage above", *numbers, "because", right=numbers)
    for one in plan.comparisons:
        amounts = [usd_text(usd) if usd is not None else "cannot" for usd in (one.usd_per_hour, one.usd_low)]
        made.add_row(*(cell(text) for text in (one.name, *amounts, one.because)))
    return Group(made, bullets(f"left out: {one}" for one in plan.not_compared))


def _rejection_lines(plan: Plan) -> Iterator[str]:
    for one in plan.rejected:
        yield f"{count_text(one.candidates, 'candidate')}: {one.reason} (such as {one.example})"
