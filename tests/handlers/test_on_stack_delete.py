"""The stack is not deleted while a run lives or a machine stands, and is when nothing is left."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.errors import StackInUse
from headrace.handlers import on_stack_delete
from headrace.local.simulated.site import SimulatedSite
from tests.handlers.sweeps import keep_training, lone_site
from tests.simulated_runs import job, machines_alive, nodes_of, only_run, simulated_site, start_until

DELETE = {"RequestType": "Delete"}


def delete(site: SimulatedSite) -> dict[str, Any]:
    return on_stack_delete.step(DELETE, site.cloud)


def test_a_stack_that_never_ran_anything_goes() -> None:
    with simulated_site() as site:
        assert delete(site) == {}


def test_a_stack_whose_runs_ended_goes() -> None:
    with simulated_site() as site:
        site.run(job())
        site.settle()
        assert machines_alive(site) == []
        assert delete(site) == {}


@pytest.mark.parametrize("phase", ["admitted", "storage", "training"])
def test_a_stack_with_a_live_run_stays_and_names_it(phase: str) -> None:
    with simulated_site() as site:
        start_until(site, phase)
        keep_training(site)
        with pytest.raises(StackInUse, match=rf"1 runs live \({only_run(site).run_id}\).*headrace stop"):
            delete(site)


def test_a_stack_with_a_machine_that_nobody_owns_stays_and_names_it() -> None:
    with lone_site() as site:
        arn = start_until(site, "training")
        keep_training(site)
        site.cloud.executions.stop(arn, "lost")
        named = sorted(node.node_id for node in nodes_of(site))
        with pytest.raises(StackInUse, match=rf"0 runs live and 3 machines stand \(.*{named[0]}"):
            delete(site)


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_making_and_changing_the_stack_ask_nothing(request_type: str) -> None:
    with simulated_site() as site:
        start_until(site, "training")
        assert on_stack_delete.step({"RequestType": request_type}, site.cloud) == {}
