"""Plans a job under a policy, in the market that it may use."""

from __future__ import annotations

from collections.abc import Callable

from headrace.domain.catalog import Market
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from headrace.domain.policy import Policy

MarketOf = Callable[[str], Market]
"""Returns the machines and prices of a region."""


def plan_under(policy: Policy, job: JobSpec, dataset: DatasetSummary, market_of: MarketOf) -> Plan:
    """Return the plan of the job held to the policy.

    Raises InfeasibleJob for what the policy does not allow and for what cannot work, naming what would.
    """
    held = policy.job(job)
    allowed = {region: policy.market(held, market_of(region)) for region in (held.region, *held.other_regions)}
    here = allowed.pop(held.region)
    if policy.allowed_regions:
        allowed = {region: market for region, market in allowed.items() if region in policy.allowed_regions}
    try:
        made = plan(held, dataset, *here, allowed)
    except InfeasibleJob as refusal:
        if held.budget_usd == job.budget_usd:
            raise
        raise InfeasibleJob(f"{refusal} (the policy holds the budget to {held.budget_usd:,.2f} USD)") from None
    policy.check(held, made)
    return made
