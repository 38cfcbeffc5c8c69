"""What stops a run before its first launch, and how it is said."""

from __future__ import annotations

from typing import Any

from headrace.domain.catalog import Catalog
from headrace.domain.errors import InfeasibleJob, QuotaExceeded
from headrace.domain.plan import FleetPlan
from headrace.domain.preflight import Findings, QuotaState, refusal, vcpus_needed
from headrace.domain.quotas import Quota
from tests.simulated_runs import machine_type

STANDARD = Quota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances")
CATALOG = Catalog(
    region="us-east-1",
    dated="2026-11-30",
    types=tuple(machine_type(name, 1).model_copy(update={"vcpus": 4}) for name in ("i4i.large", "c7i.large")),
)


def fleet(instance_type: str, count: int, **more: Any) -> FleetPlan:
    return FleetPlan(
        role="storage",
        instance_type=instance_type,
        count=count,
        arch="x86_64",
        usd_per_hour_each=0.1,
        nic_bytes_per_s=1,
        disk_count=1,
        disk_bytes=1,
        **more,
    )


def test_fleets_of_one_kind_count_against_one_quota() -> None:
    assert vcpus_needed([fleet("i4i.large", 3), fleet("c7i.large", 2)], CATALOG) == {STANDARD: 20}


def test_spot_and_on_demand_are_apart_and_a_reservation_counts_no_more() -> None:
    fleets = [fleet("i4i.large", 3, market="spot"), fleet("c7i.large", 2, reservation="cr-1")]
    assert {quota.code: vcpus for quota, vcpus in vcpus_needed(fleets, CATALOG).items()} == {"L-34B43A08": 12}


def test_what_fits_is_not_refused() -> None:
    findings = Findings({STANDARD.code: QuotaState(limit=64, used=44)})
    assert refusal({STANDARD: 20}, findings) is None
    assert refusal({STANDARD: 20}, Findings()) is None


def test_a_quota_too_small_says_what_it_has_what_is_used_and_what_is_needed() -> None:
    error = refusal({STANDARD: 21}, Findings({STANDARD.code: QuotaState(limit=64, used=44)}))
    assert isinstance(error, QuotaExceeded)
    assert str(error) == (
        "nothing was launched: quota L-1216C47A (Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances) has "
        "64 vCPUs, of which 44 are in use; the run needs 21. Ask Service Quotas for at least 65, or name smaller "
        "machines"
    )


def test_everything_that_is_wrong_is_said_at_once() -> None:
    findings = Findings({STANDARD.code: QuotaState(limit=0, used=0)}, ("the image is pending", "no zone offers it"))
    error = refusal({STANDARD: 4}, findings)
    assert isinstance(error, InfeasibleJob)
    assert str(error).startswith("nothing was launched: the image is pending; no zone offers it; quota L-1216C47A")
