"""Whole simulated runs under the roles of the template: every call that a function makes is one that it may make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import wraps
from typing import Any

from headrace.handlers import on_stack_delete
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.site import SimulatedSite
from headrace.ports import Cloud
from tests.handlers.sweeps import GRACE_SECONDS, keep_training
from tests.handlers.test_limits import committed_usd
from tests.infra.assembly import Assembly
from tests.infra.policies import Role, role_of_function
from tests.infra.rights import NEEDED
from tests.simulated_runs import JOB, ending_of, nodes_of, only_run, receipt_of, simulated_site, start_until

GIVEN = {"job": {**JOB, "data": {"source": "s3://data-a/set/"}, "results": "s3://results-a/small/"}}


class Guarded:
    """Any port; a call that the acting function's role does not allow is noted, and made none the less."""

    def __init__(self, name: str, port: object, check: Callable[..., None]) -> None:
        self._name, self._port, self._check = name, port, check

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._port, method)

        @wraps(call)
        def checked(*args: Any, **more: Any) -> Any:
            self._check(self._name, method, args, more)
            return call(*args, **more)

        return checked


class Gate:
    """Puts a guard before every port of a simulated cloud; `denied` is what no role allowed, `used` what was called."""

    def __init__(self, site: SimulatedSite, assembly: Assembly) -> None:
        self.denied: list[str] = []
        self.used: set[str] = set()
        self._site, self._assembly = site, assembly
        self._roles: dict[str, Role] = {}
        site.functions._cloud = self.cloud

    def cloud(self) -> Cloud:
        there = NEEDED.keys() & {field.name for field in fields(Cloud)}
        ports: dict[str, Any] = {name: Guarded(name, getattr(self._site.cloud, name), self._check) for name in there}
        return replace(self._site.cloud, **ports)

    def _check(self, port: str, method: str, args: Any, more: Any) -> None:
        function = self._site.functions.acting().partition(" ")[0]
        role = self._roles.setdefault(function, role_of_function(self._assembly, function))
        self.used.add(function)
        for right in NEEDED[port][method](*args, **more):
            if not role.may(right.action, right.resource, right.circumstances):
                self.denied.append(f"{function}: {right.action} on {right.resource}")


@contextmanager
def gated_site(assembly: Assembly, **switches: Any) -> Iterator[tuple[SimulatedSite, Gate]]:
    with simulated_site(**switches) as site:
        for number in range(40):
            site.objects.put("data-a", f"set/{number:04d}.bin", bytes(100 + number))
        yield site, Gate(site, assembly)


def test_a_good_run_needs_nothing_that_is_denied(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        site.run(GIVEN)
        assert receipt_of(site).status == "SUCCEEDED"
        assert sorted(set(gate.denied)) == []
        every = {id_ for id_ in options.by_name("AWS::Lambda::Function", "FunctionName") if not id_.startswith("On")}
        assert every - gate.used <= {"ReplaceNodes", "FenceCompute", "SaveLeftResults"}


def test_a_run_that_a_person_stops_is_ended_and_reported_with_the_roles_it_has(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        arn = start_until(site, "training", GIVEN)
        keep_training(site)
        site.cloud.executions.stop(arn, "enough")
        site.settle()
        assert receipt_of(site).status == "FAILED"
        assert "OnExecutionStatus" in gate.used
        assert sorted(set(gate.denied)) == []


def test_what_a_lost_machine_left_is_saved_with_the_roles_it_has(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        arn = start_until(site, "training", GIVEN)
        site.settle(35)
        (compute,) = [node for node in nodes_of(site) if node.role == "compute"]
        site.fleets.lose(compute.node_id, "reclaimed", says_goodbye=False)
        ending_of(site, arn)
        assert receipt_of(site).results_files == 1
        assert gate.used >= {"FenceCompute", "SaveLeftResults"}
        assert sorted(set(gate.denied)) == []


def test_machines_that_do_not_boot_are_replaced_with_the_roles_it_has(options: Assembly) -> None:
    with gated_site(options, plan=FaultPlan([Fault("no_boot", "machine", 1)])) as (site, gate):
        site.run(GIVEN)
        assert receipt_of(site).status == "SUCCEEDED"
        assert "ReplaceNodes" in gate.used
        assert sorted(set(gate.denied)) == []


def test_the_sweep_ends_a_lost_run_and_cleans_up_with_the_role_it_has(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        site._has_rule = False
        arn = start_until(site, "training", GIVEN)
        keep_training(site)
        site.cloud.executions.stop(arn, "lost")
        site.settle(20 * GRACE_SECONDS)
        assert only_run(site).swept_at
        assert "OnSweep" in gate.used
        assert sorted(set(gate.denied)) == []


def test_a_run_near_its_budget_is_warned_with_the_roles_it_has(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        start_until(site, "training", GIVEN)
        keep_training(site)
        site.cloud.runs.update(only_run(site).run_id, "run", "run", {"budget_usd": committed_usd(site) / 0.95}, {})
        site.settle(60)
        assert only_run(site).is_warning_out
        assert sorted(set(gate.denied)) == []


def test_a_call_that_a_role_does_not_allow_is_noticed(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        gate._roles["PlanLayout"] = role_of_function(options, "MarkTombstone")
        site.run(GIVEN)
        assert {one.split(" on ")[0] for one in gate.denied} >= {"PlanLayout: s3:PutObject", "PlanLayout: s3:GetObject"}


def test_the_deletion_of_the_stack_is_decided_with_the_role_it_has(options: Assembly) -> None:
    with gated_site(options) as (site, gate):
        site.run(GIVEN)
        site.functions.attend("OnStackDelete", {"RequestType": "Delete"}, ())
        assert "OnStackDelete" in gate.used
        assert gate.denied == []
        assert on_stack_delete.step({"RequestType": "Delete"}, site.cloud) == {}
