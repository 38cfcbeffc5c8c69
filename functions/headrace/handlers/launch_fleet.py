"""State LaunchFleet: launches the machines of a role that are missing, unless the run has a tombstone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.domain.errors import (
    AccessDenied,
    CapacityUnavailable,
    DeadlineExceeded,
    ObjectMissing,
    QuotaExceeded,
    RunTombstoned,
)
from headrace.domain.instants import from_text, to_text
from headrace.domain.launch import LaunchRequest
from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import Identity
from headrace.domain.plan import Plan, Role
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.wiring import missing_indexes
from headrace.handlers._entry import entry
from headrace.handlers._files import node_file, read_plan, write_model
from headrace.handlers._launches import note_adopted, note_asked
from headrace.handlers._requests import first_requests, launch_request
from headrace.handlers._rows import change_node, change_run, enter_phase, read_nodes, read_standing_run
from headrace.handlers._rules import price_list_of
from headrace.ports import Cloud, LaunchResult, Node

HMAC_KEY_BYTES = 32
REMARK_CHARACTERS = 1000


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Launch what the plan has and the run has not, with a client token that makes a repeat harmless.

    Where only some of it comes for want of capacity, `is_whole` is False and the next attempt asks for the rest. Raises
    RunTombstoned before or after the launch (what was launched is then undone), DeadlineExceeded when machines
    would end themselves at once, CapacityUnavailable, QuotaExceeded and AccessDenied naming every type tried.
    """
    run_id, role, attempt = request["run_id"], request["role"], request["attempt"]
    row = read_standing_run(cloud, run_id)
    _require_time(cloud, row)
    plan = read_plan(cloud, row)
    fleet = plan.fleet(role)
    if fleet is None:
        raise ValueError(f"the plan of run {run_id} has no {role} fleet")
    enter_phase(cloud, run_id, role)
    nodes = read_nodes(cloud, run_id)
    is_whole = True
    places = missing_indexes(fleet, standing(nodes, role), attempt)
    if places:
        zones, earlier = _zones(nodes, role, attempt), _earlier_zones(nodes, role, attempt)
        order = launch_request(row, plan, fleet, attempt, len(places), zones, () if zones else earlier)
        _require_rights(cloud, row, plan, is_first=not nodes)
        note_asked(cloud, order)
        _require_standing(cloud, order)
        result = cloud.fleets.launch(order)
        _adopt(cloud, row, plan, attempt, zip(places, sorted(result.nodes, key=lambda one: one.node_id), strict=False))
        note_adopted(cloud, order, is_whole=len(result.nodes) >= order.count)
        _undo_if_tombstoned(cloud, run_id, result.nodes)
        _remark_placement(cloud, row, order, result)
        _require_ending(cloud, result.nodes, is_first=not nodes)
        is_whole = _require_all(cloud, nodes, order, result)
    return {"poll_seconds": cloud.settings.poll_seconds, "launched": len(places), "is_whole": is_whole}


handler = entry(step)


def _require_time(cloud: Cloud, row: RunRow) -> None:
    if cloud.clock.now() >= from_text(row.deadline_at):
        raise DeadlineExceeded(f"the deadline of run {row.run_id} was {row.deadline_at}; nothing is launched after it")


def _zones(nodes: Sequence[NodeRow], role: Role, attempt: int) -> tuple[str, ...]:
    """Return where the run's machines stand, those of this very launch left out: a repeat must ask the same again."""
    others = (*standing(nodes, "storage"), *standing(nodes, "compute"))
    return tuple(sorted({node.zone for node in others if (node.role, node.attempt) != (role, attempt)}))


def _earlier_zones(nodes: Sequence[NodeRow], role: Role, attempt: int) -> tuple[str, ...]:
    """Return where earlier attempts were, when nothing stands any more: those zones are tried last."""
    return tuple(sorted({node.zone for node in nodes if node.role == role and node.attempt < attempt}))


def _require_rights(cloud: Cloud, row: RunRow, plan: Plan, *, is_first: bool) -> None:
    """Raise AccessDenied when a policy would refuse a launch of the plan: better now than after staging."""
    refusals = cloud.checks.try_launches(first_requests(row, plan)) if is_first else ()
    if refusals:
        raise AccessDenied(f"nothing was launched: {'; '.join(refusals)}. Allow it for the role of LaunchFleet")


def _require_standing(cloud: Cloud, order: LaunchRequest) -> None:
    """Raise RunTombstoned when the run was ended before the launch was noted: whoever ends it later waits for it."""
    try:
        read_standing_run(cloud, order.run_id)
    except RunTombstoned:
        note_adopted(cloud, order, is_whole=False)
        raise


def _require_ending(cloud: Cloud, nodes: Sequence[Node], *, is_first: bool) -> None:
    """Raise AccessDenied when what was launched could not be ended, before anything more expensive follows.

    Only real machines can be asked about: a policy by tags refuses any other id. They end themselves at their deadline.
    """
    refusal = cloud.checks.try_terminate([node.node_id for node in nodes]) if is_first and nodes else None
    if refusal:
        raise AccessDenied(f"machines can be launched but not terminated: {refusal}")


def _adopt(cloud: Cloud, row: RunRow, plan: Plan, attempt: int, placed: Iterable[tuple[int, Node]]) -> None:
    """Give every new machine its place and its signing key; a machine adopted before keeps both."""
    prices = price_list_of(cloud, row, plan.region).on_demand
    for index, node in placed:
        planned = _planned_price(plan, node)
        adopted = _node_row(row, node, attempt, index, prices.get(node.instance_type, planned))
        cloud.runs.insert(row.run_id, "node", node.node_id, adopted.model_dump(mode="json"))
        _give_identity(cloud, row, node, attempt)


def _planned_price(plan: Plan, node: Node) -> float:
    """Return what the plan counts for such a machine, where the list has no price: never nothing."""
    fleet = plan.fleet(node.role)
    return fleet.usd_per_hour_each if fleet else 0.0


def _give_identity(cloud: Cloud, row: RunRow, node: Node, attempt: int) -> None:
    """Write the signing key once: a machine may have read it already."""
    name = node_file(cloud, node.node_id, "identity.json")
    try:
        cloud.objects.head(cloud.settings.run_bucket, row.prefix + name)
    except ObjectMissing:
        key = cloud.entropy.token_hex(HMAC_KEY_BYTES)
        write_model(cloud, row, name, Identity(run_id=row.run_id, node_id=node.node_id, attempt=attempt, hmac_key=key))


def _node_row(row: RunRow, node: Node, attempt: int, index: int, usd_per_hour: float) -> NodeRow:
    return NodeRow(
        run_id=row.run_id,
        node_id=node.node_id,
        role=node.role,
        attempt=attempt,
        index=index,
        instance_type=node.instance_type,
        zone=node.zone,
        address=node.address,
        usd_per_hour=usd_per_hour,
        launched_at=to_text(node.launched_at),
    )


def _undo_if_tombstoned(cloud: Cloud, run_id: str, nodes: Sequence[Node]) -> None:
    try:
        read_standing_run(cloud, run_id)
    except Exception:
        cloud.fleets.terminate([node.node_id for node in nodes])
        raise


def _remark_placement(cloud: Cloud, row: RunRow, order: LaunchRequest, result: LaunchResult) -> None:
    """Note for the receipt when machines that should meet in a cluster placement group were launched without it."""
    apart = [node for node in result.nodes if node.placement != order.placement]
    launch = f"{order.role} launch {order.attempt}: "
    if order.placement == "cluster" and apart and not any(one.startswith(launch) for one in row.remarks):
        why = "; ".join(dict.fromkeys(f"{one.zone}: {one.message}" for one in result.faults)) or "no reason was told"
        remark = f"{launch}{len(apart)} machines came without a cluster placement group ({why})"
        change_run(cloud, row.run_id, {"remarks": [*row.remarks, remark[:REMARK_CHARACTERS]]})


def _require_all(cloud: Cloud, nodes: Sequence[NodeRow], order: LaunchRequest, result: LaunchResult) -> bool:
    """Tell whether the fleet is whole; False when the next attempt is to ask for the rest of it.

    `nodes` are the run's before this launch. A fleet of which nothing has come has been tried everywhere already.
    """
    if len(result.nodes) >= order.count:
        return True
    before = len(standing(nodes, order.role))
    wanted, came = before + order.count, before + len(result.nodes)
    tried = "; ".join(f"{one.instance_type} in {one.zone}: {one.message}" for one in result.faults)
    found = f"asked for {wanted} {order.role} machines, {came} came; tried {tried or 'nothing else'}"
    if any(one.meaning == "denied" for one in result.faults):
        raise AccessDenied(f"{found}. Allow the action named above, then run again")
    if any(one.meaning == "quota" for one in result.faults):
        raise QuotaExceeded(f"{found}. Raise the limit named above, then run again")
    if order.attempt < cloud.settings.launch_attempts and came:
        _leave_short_zone(cloud, nodes, order, found)
        return False
    raise CapacityUnavailable(f"{found}. Try another region, a capacity reservation, or run again later")


def _leave_short_zone(cloud: Cloud, nodes: Sequence[NodeRow], order: LaunchRequest, found: str) -> None:
    """Give up what has come, before the last attempt, unless the run's other fleet holds it to its zone.

    The machines of a run stay in one zone: between zones each gigabyte is paid for, and EFA does not reach.
    """
    other: Role = "storage" if order.role == "compute" else "compute"
    if order.attempt + 1 < cloud.settings.launch_attempts or standing(nodes, other):
        return
    for node in standing(read_nodes(cloud, order.run_id), order.role):
        change_node(cloud, node, {"state": "failed", "failure": f"its fleet did not come whole: {found}"[:2000]})
