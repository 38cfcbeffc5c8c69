"""The zone is chosen for the scarcer fleet, and the run's machines stay together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.aws.places import Place, places_for
from headrace.domain.launch import Beside
from tests.local.agents import launch_request

SUBNETS = {"a": "subnet-a", "b": "subnet-b", "c": "subnet-c"}
REQUEST = launch_request("job-1", types=("i4i.large", "i4i.xlarge"))


def offers(**zones: str) -> dict[str, frozenset[str]]:
    return {zone: frozenset(types.split()) for zone, types in zones.items()}


def zones(*places: Place) -> list[str]:
    return [place.zone for place in places]


def test_only_zones_with_a_subnet_and_the_type_are_tried() -> None:
    found = places_for(REQUEST, SUBNETS, offers(a="i4i.xlarge", c="i4i.large i4i.xlarge", d="i4i.large"))
    assert found == (
        Place("c", "subnet-c", ("i4i.large", "i4i.xlarge")),
        Place("a", "subnet-a", ("i4i.xlarge",)),
    )


def test_storage_goes_where_the_accelerators_are_offered() -> None:
    request = replace(REQUEST, beside=Beside(("p5.48xlarge", "p4d.24xlarge")))
    both = "i4i.large i4i.xlarge"
    offered = offers(a=both, b=f"{both} p4d.24xlarge", c="i4i.xlarge p5.48xlarge")
    assert zones(*places_for(request, SUBNETS, offered)) == ["c", "b"]


def test_zones_that_were_short_before_are_tried_last() -> None:
    offered = dict.fromkeys(SUBNETS, frozenset(REQUEST.instance_types))
    assert zones(*places_for(replace(REQUEST, last_zones=("a",)), SUBNETS, offered)) == ["b", "c", "a"]


def test_a_fleet_goes_where_the_run_already_is() -> None:
    request = replace(REQUEST, zones=("b",))
    assert zones(*places_for(request, SUBNETS, offers(a="i4i.large", b="i4i.large"))) == ["b"]
    assert places_for(request, SUBNETS, offers(a="i4i.large")) == ()


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b")])
def test_among_equals_the_configured_order_counts(order: tuple[str, ...]) -> None:
    subnets = {zone: SUBNETS[zone] for zone in order}
    equal = offers(a="i4i.large", b="i4i.large", c="i4i.large")
    assert zones(*places_for(REQUEST, subnets, equal)) == list(order)
