"""Renewing the leases of machines, so that each knows from its own prefix that the control plane lives."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.domain.instants import from_text, to_text
from headrace.domain.nodeconfig import Lease
from headrace.domain.run import NodeRow, RunRow
from headrace.domain.spending import LEASE_SLACK_SECONDS, lease_ends_at
from headrace.handlers._files import node_file, write_model
from headrace.handlers._limits import run_limits
from headrace.handlers._rows import change_node, change_run, read_nodes
from headrace.ports import Cloud

RENEWALS_PER_LEASE = 4
"""A machine may miss three renewals in a row before its lease runs out."""
COUNTED_ANEW = timedelta(seconds=60)


def renew_lease(cloud: Cloud, run: RunRow, node: NodeRow) -> None:
    """Write `lease.json` into the node's folder when the last one is old.

    A machine that is heard although its run has a tombstone is given one last, short lease: where termination is
    denied, it ends itself.
    """
    now = cloud.clock.now()
    if run.tombstone_at:
        if (node.lease_renewed_at or "") < run.tombstone_at:
            _write(cloud, run, node, from_text(run.tombstone_at) + timedelta(seconds=LEASE_SLACK_SECONDS), now)
    elif _is_old(cloud, node, now):
        _write(cloud, run, node, _lease_ends_at(cloud, run, now), now)


def _lease_ends_at(cloud: Cloud, run: RunRow, now: datetime) -> datetime:
    """Return until when the machine may stay: a large run with a budget counts its machines once a minute or so."""
    if run.budget_usd is None:
        return lease_ends_at(run, run_limits(cloud, run, ()), now)
    if run.is_large and run.money_counted_at and now - from_text(run.money_counted_at) < COUNTED_ANEW:
        return from_text(str(run.money_lasts_until))
    ends_at = lease_ends_at(run, run_limits(cloud, run, read_nodes(cloud, run.run_id)), now)
    if run.is_large:
        counted = {"money_counted_at": to_text(now), "money_lasts_until": to_text(ends_at)}
        change_run(cloud, run.run_id, counted, {"money_counted_at": run.money_counted_at})
    return ends_at


def _is_old(cloud: Cloud, node: NodeRow, now: datetime) -> bool:
    period = timedelta(seconds=cloud.settings.idle_lease_seconds / RENEWALS_PER_LEASE)
    return node.lease_renewed_at is None or now - from_text(node.lease_renewed_at) >= period


def _write(cloud: Cloud, run: RunRow, node: NodeRow, deadline_at: datetime, now: datetime) -> None:
    lease = Lease(deadline_at=to_text(deadline_at), renewed_at=to_text(now))
    write_model(cloud, run, node_file(cloud, node.node_id, "lease.json"), lease)
    change_node(cloud, node, {"lease_renewed_at": lease.renewed_at})
