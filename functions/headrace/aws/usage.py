"""Reads vCPU quotas, and how much of each is in use by whatever runs in the region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from headrace.aws.error_codes import code_of, meaning_of
from headrace.domain.preflight import QuotaState
from headrace.domain.quotas import quota_of

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef
    from mypy_boto3_service_quotas import ServiceQuotasClient

UNREADABLE = frozenset({"NoSuchResourceException", "DependencyAccessDeniedException"})


def read_quotas(quotas: ServiceQuotasClient, ec2: EC2Client, codes: Sequence[str]) -> Mapping[str, QuotaState]:
    """Return the quotas of these codes; one that may not or cannot be read is absent.

    Where machines may not be listed, none is counted as in use.
    """
    limits = {code: limit for code in codes if (limit := _limit(quotas, code)) is not None}
    used = _vcpus_in_use(ec2) if limits else {}
    return {code: QuotaState(limit, used.get(code, 0.0)) for code, limit in limits.items()}


def _limit(client: ServiceQuotasClient, code: str) -> float | None:
    try:
        return client.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]
    except ClientError as error:
        if code_of(error) in UNREADABLE or meaning_of(code_of(error)) == "denied":
            return None
        raise


def _vcpus_in_use(client: EC2Client) -> dict[str, float]:
    used: dict[str, float] = {}
    pages = client.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}],
        PaginationConfig={"PageSize": 1000},
    )
    try:
        for page in pages:
            for reservation in page["Reservations"]:
                for one in reservation.get("Instances", ()):
                    _count(used, one)
    except ClientError as error:
        if meaning_of(code_of(error)) != "denied":
            raise
    return used


def _count(used: dict[str, float], instance: InstanceTypeDef) -> None:
    lifecycle = instance.get("InstanceLifecycle", "on-demand")
    if lifecycle not in ("on-demand", "spot"):
        # A capacity block counts against no quota of these.
        return
    quota = quota_of(instance["InstanceType"], "spot" if lifecycle == "spot" else "on-demand")
    cpu = instance.get("CpuOptions", {})
    if quota is not None:
        used[quota.code] = used.get(quota.code, 0.0) + cpu.get("CoreCount", 0) * cpu.get("ThreadsPerCore", 1)
