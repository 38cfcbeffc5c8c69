"""A fleet of which only some comes: the rest is asked for again, then elsewhere, and without it there is no run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.domain.errors import CapacityUnavailable
from headrace.domain.launch import LaunchRequest
from headrace.handlers import launch_fleet, replace_nodes
from headrace.local.simulated.machines import ZONE
from headrace.local.simulated.site import SimulatedSite
from headrace.ports import LaunchFault, LaunchResult
from tests.handlers.test_fleet_steps import order, planned
from tests.simulated_runs import job, machines_alive, nodes_of, receipt_of, simulated_site

__all__ = ["planned"]


def short_by(site: SimulatedSite, *missing: int) -> list[LaunchRequest]:
    """Let so many machines of one launch after another not come; return what will have been asked."""
    seen: list[LaunchRequest] = []
    launch, left = site.fleets.launch, list(missing)

    def partial(request: LaunchRequest) -> LaunchResult:
        seen.append(request)
        fault = LaunchFault("i4i.large", ZONE, "capacity", "UnfulfillableCapacity")
        short = min(left.pop(0) if left else 0, request.count)
        if short == request.count:
            return LaunchResult((), (fault,))
        return replace(launch(request, short=short), faults=(fault,) if short else ())

    site.fleets.launch = partial  # type: ignore[method-assign, assignment]
    return seen


def test_what_is_missing_is_asked_for_again_where_the_others_stand(planned: SimulatedSite) -> None:
    seen = short_by(planned, 1)
    assert launch_fleet.step(order(planned), planned.cloud)["is_whole"] is False
    assert replace_nodes.step(order(planned), planned.cloud) == {"attempt": 2}
    assert launch_fleet.step(order(planned, attempt=2), planned.cloud)["is_whole"] is True
    assert [(one.count, one.zones, one.last_zones) for one in seen] == [(2, (), ()), (1, (ZONE,), ())]
    assert len({one.client_token for one in seen}) == 2
    assert sorted(node.index for node in nodes_of(planned)) == [0, 1]


def test_a_fleet_that_stays_short_is_given_up_for_another_zone(planned: SimulatedSite) -> None:
    seen = short_by(planned, 1, 1)
    for attempt in (1, 2):
        assert launch_fleet.step(order(planned, attempt=attempt), planned.cloud)["is_whole"] is False
        replace_nodes.step(order(planned, attempt=attempt), planned.cloud)
    assert all(node.released_at for node in nodes_of(planned))
    assert launch_fleet.step(order(planned, attempt=3), planned.cloud)["is_whole"] is True
    assert (seen[2].count, seen[2].zones, seen[2].last_zones) == (2, (), (ZONE,))


def test_a_fleet_beside_another_stays_in_its_zone(planned: SimulatedSite) -> None:
    launch_fleet.step(order(planned, role="compute"), planned.cloud)
    seen = short_by(planned, 1, 1)
    for attempt in (1, 2):
        launch_fleet.step(order(planned, attempt=attempt), planned.cloud)
        replace_nodes.step(order(planned, attempt=attempt), planned.cloud)
    launch_fleet.step(order(planned, attempt=3), planned.cloud)
    assert [(one.count, one.zones) for one in seen] == [(2, (ZONE,)), (1, (ZONE,)), (1, (ZONE,))]


def test_a_fleet_that_never_comes_whole_is_no_fleet(planned: SimulatedSite) -> None:
    short_by(planned, 1, 1, 1)
    for attempt in (1, 2):
        launch_fleet.step(order(planned, attempt=attempt), planned.cloud)
        replace_nodes.step(order(planned, attempt=attempt), planned.cloud)
    with pytest.raises(CapacityUnavailable, match="asked for 2 storage machines, 1 came"):
        launch_fleet.step(order(planned, attempt=3), planned.cloud)


def test_a_fleet_of_which_nothing_comes_is_told_at_once(planned: SimulatedSite) -> None:
    short_by(planned, 2)
    with pytest.raises(CapacityUnavailable, match="asked for 2 storage machines, 0 came"):
        launch_fleet.step(order(planned), planned.cloud)


def test_the_whole_machine_asks_again_and_ends_as_it_should() -> None:
    with simulated_site() as site:
        short_by(site, 1, 1)
        assert site.run(job()).status == "SUCCEEDED"
        assert machines_alive(site) == []
    with simulated_site() as site:
        short_by(site, 1, 1, 1)
        assert site.run(job()).status == "FAILED"
        assert "CapacityUnavailable: asked for 2 storage machines, 1 came" in str(receipt_of(site).reason)
        assert machines_alive(site) == []
        assert all(one.released_at for one in receipt_of(site).resources)
