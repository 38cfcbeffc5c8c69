"""A machine that was replaced is seen to be on its way out before others are wired into its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.errors import NodeNotReady
from headrace.domain.presence import HIDDEN_SECONDS
from headrace.handlers import check_nodes, launch_fleet, replace_nodes
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import NodeLife
from tests.simulated_runs import nodes_of, only_run, simulated_site, start_until


@pytest.fixture
def replaced() -> Iterator[tuple[SimulatedSite, str]]:
    """Yield a site whose first storage machine was replaced by another that is up, and that first one's id."""
    with simulated_site(sweep_seconds=None, has_lease=False) as site:
        invoke = site.invoke

        async def only_plan(name: str, payload: Any) -> Any:
            if name in ("LaunchFleet", "MarkTombstone"):
                raise RuntimeError("the test does this itself")
            return await invoke(name, payload)

        site.invoke = only_plan
        start_until(site, "planning")
        launch_fleet.step(order(site, 1), site.cloud)
        bad = nodes_of(site)[0].node_id
        site.cloud.runs.update(only_run(site).run_id, "node", bad, {"state": "failed", "failure": "no disk"}, {})
        replace_nodes.step(order(site, 1), site.cloud)
        launch_fleet.step(order(site, 2), site.cloud)
        site.settle(90)
        yield site, bad


def order(site: SimulatedSite, attempt: int) -> dict[str, Any]:
    return {"run_id": only_run(site).run_id, "role": "storage", "attempt": attempt}


def verdict(site: SimulatedSite) -> str:
    return str(check_nodes.step(order(site, 2), site.cloud)["verdict"])


def show(site: SimulatedSite, node_id: str, life: NodeLife) -> None:
    machine = site.fleets.machines[node_id]
    machine.node = replace(machine.node, life=life)


@pytest.mark.parametrize("life", ["stopping", "terminated"])
def test_a_fleet_is_ready_once_the_replaced_machine_is_on_its_way_out(
    replaced: tuple[SimulatedSite, str], life: NodeLife
) -> None:
    site, bad = replaced
    show(site, bad, life)
    assert verdict(site) == "ready"


@pytest.mark.parametrize("life", ["pending", "running"])
def test_a_replaced_machine_that_goes_on_running_is_asked_again_and_waited_for(
    replaced: tuple[SimulatedSite, str], life: NodeLife
) -> None:
    site, bad = replaced
    show(site, bad, life)
    assert verdict(site) == "waiting"
    assert site.fleets.machines[bad].node.life == "stopping", "it was asked once more"
    assert verdict(site) == "ready"


def test_r011_a_replaced_machine_that_is_not_listed_may_only_be_hidden(replaced: tuple[SimulatedSite, str]) -> None:
    site, bad = replaced
    site.fleets.hide([bad], 10**6)
    assert verdict(site) == "waiting"
    site.settle(HIDDEN_SECONDS)
    assert verdict(site) == "ready"


def test_a_replaced_machine_that_cannot_be_ended_fails_the_fleet(replaced: tuple[SimulatedSite, str]) -> None:
    site, bad = replaced
    terminate = site.fleets.terminate

    def deaf(node_ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(node_ids) if bad in node_ids else terminate(node_ids)

    site.fleets.terminate = deaf  # type: ignore[assignment,method-assign]
    show(site, bad, "running")
    assert verdict(site) == "waiting"
    site.settle(SETTINGS.node_boot_timeout_seconds)
    with pytest.raises(NodeNotReady, match=f"go on running though they were told to terminate: {bad}"):
        verdict(site)
