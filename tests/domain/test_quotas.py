"""Which vCPU quota a machine counts against."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import Literal

import pytest

from headrace.domain.catalog import parse_catalog
from headrace.domain.quotas import quota_of


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("i4i.large", "L-1216C47A", "L-34B43A08"),
        ("im4gn.large", "L-1216C47A", "L-34B43A08"),
        ("is4gen.large", "L-1216C47A", "L-34B43A08"),
        ("c7i.large", "L-1216C47A", "L-34B43A08"),
        ("g6e.xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("vt1.3xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p6-b200.48xlarge", "L-417A185B", None),
        ("trn1.32xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("inf2.48xlarge", "L-1945791B", "L-B5D1601B"),
        ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"),
        ("x2idn.32xlarge", "L-7295265B", "L-E3A00192"),
        ("u-6tb1.112xlarge", "L-43DA4232", None),
        ("mac2.metal", None, None),
    ],
)
def test_families_have_their_quotas(instance_type: str, on_demand: str | None, spot: str | None) -> None:
    markets: tuple[tuple[Literal["on-demand", "spot"], str | None], ...] = (("on-demand", on_demand), ("spot", spot))
    for market, code in markets:
        quota = quota_of(instance_type, market)
        assert (quota.code if quota else None) == code


def test_a_name_says_what_the_console_says() -> None:
    quota = quota_of("i4i.large", "on-demand")
    assert quota is not None
    assert quota.name == "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"


def test_every_type_of_the_catalog_has_a_quota_on_demand() -> None:
    text = gzip.decompress((files("headrace") / "data" / "catalog.json.gz").read_bytes()).decode()
    types = parse_catalog(text, "us-east-1").types
    assert len(types) > 500
    assert [one.name for one in types if quota_of(one.name, "on-demand") is None] == []
