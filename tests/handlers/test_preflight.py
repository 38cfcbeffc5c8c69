"""Preflight inside a run: what is found out before the first launch ends the run there, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.domain.launch import LaunchRequest
from headrace.domain.preflight import Findings, QuotaState
from headrace.handlers._files import read_plan
from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import job, nodes_of, only_run, receipt_of, simulated_site


@dataclass
class Scripted:
    """A Checks port that answers as told and remembers what it was asked."""

    findings: Findings = field(default_factory=Findings)
    launches: tuple[str, ...] = ()
    terminate: str | None = None
    asked: list[Any] = field(default_factory=list)

    def reservation(self, _reservation_id: str) -> None:
        """Know of none."""

    def look(self, requests: Sequence[LaunchRequest], quota_codes: Sequence[str]) -> Findings:
        self.asked.append(([request.role for request in requests], list(quota_codes)))
        return self.findings

    def try_launches(self, requests: Sequence[LaunchRequest]) -> tuple[str, ...]:
        self.asked.append(("launch", [request.role for request in requests]))
        return self.launches

    def try_terminate(self, node_ids: Sequence[str]) -> str | None:
        self.asked.append(("terminate", len(node_ids)))
        return self.terminate


def run_with(site: SimulatedSite, checks: Scripted) -> str:
    site.cloud = replace(site.cloud, checks=checks)
    site.run(job())
    return str(receipt_of(site).reason)


def test_all_is_asked_once_and_a_clean_answer_changes_nothing() -> None:
    checks = Scripted()
    with simulated_site() as site:
        run_with(site, checks)
        assert receipt_of(site).status == "SUCCEEDED"
    both = ["storage", "compute"]
    assert [(sorted(roles), codes) for roles, codes in checks.asked[:1]] == [(sorted(both), ["L-1216C47A"])]
    assert [one[0] for one in checks.asked[1:]] == ["launch", "terminate"]
    assert sorted(checks.asked[1][1]) == sorted(both)


def test_what_could_not_be_found_out_stands_in_the_plan() -> None:
    with simulated_site() as site:
        site.cloud = replace(site.cloud, checks=Scripted(Findings(warnings=("image ami-1 has no tag",))))
        site.run(job())
        assert receipt_of(site).status == "SUCCEEDED"
        assert read_plan(site.cloud, only_run(site)).assumptions[-1] == "image ami-1 has no tag"


def test_a_quota_too_small_for_the_plan_ends_the_run_before_any_launch() -> None:
    with simulated_site() as site:
        reason = run_with(site, Scripted(Findings({"L-1216C47A": QuotaState(1, 0)})))
        assert reason.startswith("PlanLayout: QuotaExceeded: nothing was launched: quota L-1216C47A")
        assert nodes_of(site) == ()


def test_a_policy_that_refuses_a_launch_ends_the_run_before_any_launch() -> None:
    with simulated_site() as site:
        reason = run_with(site, Scripted(launches=("compute machines: ec2:RunInstances: no",)))
        assert "AccessDenied: nothing was launched: compute machines: ec2:RunInstances: no" in reason
        assert nodes_of(site) == ()


def test_machines_that_could_not_be_ended_are_the_last_to_be_launched() -> None:
    with simulated_site() as site:
        reason = run_with(site, Scripted(terminate="ec2:TerminateInstances: UnauthorizedOperation"))
        assert "AccessDenied: machines can be launched but not terminated: ec2:TerminateInstances" in reason
        assert {node.role for node in nodes_of(site)} == {"storage"}
