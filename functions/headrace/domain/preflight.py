"""What must hold before the first machine is launched, judged from what the cloud says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.domain.catalog import Catalog
from headrace.domain.errors import HeadraceError, InfeasibleJob, QuotaExceeded
from headrace.domain.plan import FleetPlan
from headrace.domain.quotas import Quota, quota_of


class QuotaState(NamedTuple):
    """A quota as it stands, in vCPUs."""

    limit: float
    used: float


@dataclass(frozen=True)
class Findings:
    """What was found; a quota that is absent could not be read and stops nothing."""

    quotas: Mapping[str, QuotaState] = field(default_factory=dict)
    """By the code of the quota."""
    faults: tuple[str, ...] = ()
    """Whatever else would make a launch fail, each with what to change."""
    warnings: tuple[str, ...] = ()
    """What could not be found out and only the machines themselves will show."""


def vcpus_needed(fleets: Iterable[FleetPlan], catalog: Catalog) -> dict[Quota, int]:
    """Return the vCPUs that the fleets count against each quota.

    Machines in a reservation count nothing more: the reservation did, and a capacity block never does.
    """
    needed: dict[Quota, int] = {}
    for fleet in fleets:
        if fleet.reservation or fleet.market == "capacity-block":
            continue
        quota, found = quota_of(fleet.instance_type, fleet.market), catalog.find(fleet.instance_type)
        if quota and found:
            needed[quota] = needed.get(quota, 0) + found.vcpus * fleet.count
    return needed


def refusal(needed: Mapping[Quota, int], findings: Findings) -> HeadraceError | None:
    """Return the error that refuses the launch with everything that is wrong, or None when nothing is."""
    shortages = tuple(
        text for quota, vcpus in needed.items() if (text := _shortage(quota, vcpus, findings.quotas.get(quota.code)))
    )
    problems = (*findings.faults, *shortages)
    if not problems:
        return None
    kind = InfeasibleJob if findings.faults else QuotaExceeded
    return kind("nothing was launched: " + "; ".join(problems))


def _shortage(quota: Quota, needed: int, state: QuotaState | None) -> str | None:
    if state is None or needed <= state.limit - state.used:
        return None
    return (
        f"quota {quota.code} ({quota.name}) has {state.limit:,.0f} vCPUs, of which {state.used:,.0f} are in use; the "
        f"run needs {needed:,}. Ask Service Quotas for at least {state.used + needed:,.0f}, or name smaller machines"
    )
