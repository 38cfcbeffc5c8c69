"""A policy narrows what may be planned, and every refusal names what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.catalog import Market
from headrace.domain.errors import BadSettings, InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planning import plan_under
from headrace.domain.policy import ALLOW_ALL, Policy
from headrace.domain.settings_text import parse_settings
from tests.domain.small_world import CHEAP, FAST, GB, GPU1, GPU8, SMALL, TB, dataset, job, world

READS = {"read_bytes_per_s": 6 * GB}
GPUS = world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5, FAST: 2.0})


def policy(text: str) -> Policy:
    return parse_settings(text, Policy, "policy.yaml")


def made(text: str, spec: JobSpec, small: Any = SMALL) -> Plan:
    return plan_under(policy(text), spec, dataset(), lambda _region: Market(*small))


def refused(text: str, spec: JobSpec, small: Any = SMALL) -> str:
    with pytest.raises(InfeasibleJob, match=r".*") as found:
        made(text, spec, small)
    return str(found.value)


def test_without_rules_everything_is_as_planned() -> None:
    spec = job(demand=READS)
    assert plan_under(ALLOW_ALL, spec, dataset(), lambda _region: Market(*SMALL)) == made("{}", spec)


def test_types_that_are_not_allowed_are_passed_over() -> None:
    spec = job(demand=READS)
    assert made("{}", spec).chosen.fleets[0].instance_type == "disk.cheap"
    assert made("denied_types: [disk.ch*]", spec).chosen.fleets[0].instance_type == "disk.fast"
    assert made("allowed_types: ['cpu.*', disk.fast]", spec).chosen.fleets[0].instance_type == "disk.fast"


def test_a_named_type_that_is_not_allowed_is_refused_with_those_that_are() -> None:
    said = refused("allowed_types: ['disk.*', 'gpu.*']\ndenied_types: [gpu.8x]", job())
    assert "does not allow compute.instance_type 'cpu.large'; allowed: disk.*, gpu.*, save gpu.8x" in said


def test_a_region_that_is_not_allowed_is_refused_with_those_that_are() -> None:
    said = refused("allowed_regions: [eu-west-1, eu-central-1]", job())
    assert said.startswith("the policy allows no machines in us-east-1; allowed: eu-west-1, eu-central-1")


def test_the_policy_s_budget_holds_beside_the_job_s() -> None:
    spec = job(demand=READS, duration_hours=10)
    said = refused("max_usd_per_run: 20", spec)
    assert "the cheapest plan" in said
    assert "What fits: duration_hours: " in said
    assert said.endswith("(the policy holds the budget to 20.00 USD)")
    lower = refused("max_usd_per_run: 20", spec.model_copy(update={"budget_usd": 10.0}))
    assert "budget_usd is 10.00 USD" in lower
    assert "policy" not in lower


def test_runs_that_take_too_long_are_refused_with_what_fits() -> None:
    assert "the policy allows runs of 5 h" in refused("max_hours: 5", job(duration_hours=6))
    said = refused("max_hours: 5", job(duration_hours=5))
    assert "the policy allows 5 h; fits: duration_hours: 4.9" in said
    assert made("max_hours: 5", job(duration_hours=4.9)).chosen


def test_a_team_has_limits_of_its_own() -> None:
    text = "teams: {vision: {max_accelerators: 4}, speech: {max_usd_per_run: 1}}"
    spec = job(compute={"accelerator": "h100", "count": 8})
    assert "the job says no team; write team: one of speech, vision" in refused(text, spec, GPUS)
    others = spec.model_copy(update={"team": "text"})
    assert "team 'text' is not in the policy" in refused(text, others, GPUS)
    vision = spec.model_copy(update={"team": "vision"})
    assert "the policy allows 4; write count: 4" in refused(text, vision, GPUS)
    speech = spec.model_copy(update={"team": "speech"})
    assert "the policy holds the budget to 1.00 USD" in refused(text, speech, GPUS)


def test_dear_runs_need_one_of_the_approvers() -> None:
    rules = policy("approval_over_usd: 5\napprovers: [ada, grace]")
    spec = job(demand=READS, duration_hours=10)
    plan = plan_under(rules, spec, dataset(), lambda _region: Market(*SMALL))
    assert "over 5.00 USD: have one of ada, grace write approved_by" in rules.approval_fault(spec, plan)
    assert rules.approval_fault(spec.model_copy(update={"approved_by": "eve"}), plan)
    assert rules.approval_fault(spec.model_copy(update={"approved_by": "ada"}), plan) == ""
    cheap = job(demand=READS, duration_hours=0.1)
    assert rules.approval_fault(cheap, plan_under(rules, cheap, dataset(), lambda _region: Market(*SMALL))) == ""


def test_machines_are_not_moved_to_a_region_that_is_not_allowed() -> None:
    inputs = {"source": "s3://datasets/a/", "region": "eu-west-1"}
    spec = job(data=inputs, compute={"instance_type": "cpu.large", "region": "us-east-1"})
    catalog, prices = SMALL
    here = Market(catalog, prices.model_copy(update={"transfer_out_usd_per_gb": {"eu-west-1": 0.02}}))
    rules = policy("allowed_regions: [us-east-1]")
    moving = plan_under(rules, spec, dataset(TB), lambda _region: here).regions[-1]
    assert (moving.way, moving.is_available) == ("move the machines", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("approval_over_usd: 5", "needs approvers, or nobody could ever approve"),
        ("max_hours: 0", "max_hours: Input should be greater than 0"),
        ("max_accelerators: many", "line 1, column 1, max_accelerators: Input should be a valid integer"),
        ("teams: {Vision: {}}", "teams.Vision"),
    ],
)
def test_a_bad_policy_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=r"policy\.yaml is not valid") as found:
        policy(text)
    assert said in str(found.value)
