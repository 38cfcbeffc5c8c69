"""What a team allows: regions, machine types, hours, money, limits of each team, and what needs a second person."""

from __future__ import annotations

import fnmatch
import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from headrace.domain.amounts import usd_text
from headrace.domain.catalog import Market
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.model import Model, Slug
from headrace.domain.plan import Plan

Money = Annotated[float, Field(gt=0, le=10**9, strict=False)]
Hours = Annotated[float, Field(gt=0, le=8500, strict=False)]
Names = Annotated[tuple[str, ...], Field(strict=False)]


class Limits(Model):
    """What one run may take."""

    max_usd_per_run: Money | None = None
    max_hours: Hours | None = None
    """From the first launch to the last release, as planned."""
    max_accelerators: Annotated[int, Field(ge=0)] | None = None


class Policy(Limits):
    """The rules of everyone; a team's own limits hold besides."""

    allowed_regions: Names = ()
    """Empty allows all."""
    allowed_types: Names = ()
    """Patterns such as `g6.*`; empty allows all."""
    denied_types: Names = ()
    teams: dict[Slug, Limits] = {}
    """With teams named, every job says whose it is."""
    approval_over_usd: Money | None = None
    """Runs that may cost more than this need a second person."""
    approvers: Names = ()

    @model_validator(mode="after")
    def _someone_approves(self) -> Self:
        if self.approval_over_usd is not None and not self.approvers:
            raise ValueError("approval_over_usd needs approvers, or nobody could ever approve")
        return self

    def job(self, job: JobSpec) -> JobSpec:
        """Return the job held to the limits: its budget is at most theirs.

        Raises InfeasibleJob for a region, team, accelerators or hours that are not allowed, naming what is.
        """
        if self.allowed_regions and job.region not in self.allowed_regions:
            raise InfeasibleJob(
                f"the policy allows no machines in {job.region}; allowed: {', '.join(self.allowed_regions)}. "
                "Write compute.region"
            )
        limits = (self, *self._team_limits(job))
        for one in limits:
            _hold(job, one)
        budgets = [one.max_usd_per_run for one in limits if one.max_usd_per_run is not None]
        given = [job.budget_usd] if job.budget_usd is not None else []
        return job.model_copy(update={"budget_usd": min([*budgets, *given])}) if budgets else job

    def market(self, job: JobSpec, market: Market) -> Market:
        """Return the market without the types that are not allowed. Raises InfeasibleJob when the job names one."""
        types = tuple(one for one in market.catalog.types if self._allows(one.name))
        named = job.compute.instance_type
        if named is not None and market.catalog.find(named) and not self._allows(named):
            raise InfeasibleJob(f"the policy does not allow compute.instance_type {named!r}; {self._allowed_words()}")
        return Market(market.catalog.model_copy(update={"types": types}), market.prices)

    def check(self, job: JobSpec, plan: Plan) -> None:
        """Raise InfeasibleJob for a plan that takes too long."""
        planned = sum(phase.eta_s for phase in plan.chosen.phases) / 3600
        most = min((one.max_hours for one in (self, *self._team_limits(job)) if one.max_hours), default=None)
        if most is not None and planned > most:
            beside = planned - job.duration_hours
            fits = (
                f"duration_hours: {math.floor((most - beside) * 100) / 100:g}"
                if most > beside
                else "nothing with so much to copy"
            )
            raise InfeasibleJob(
                f"the run is planned to take {planned:.3g} h, the policy allows {most:g} h; fits: {fits}"
            )

    def approval_fault(self, job: JobSpec, plan: Plan) -> str:
        """Return why the run may not start without another person's word, or nothing."""
        over = self.approval_over_usd
        if over is None or plan.chosen.usd_high <= over or job.approved_by in self.approvers:
            return ""
        return (
            f"the run may cost {usd_text(plan.chosen.usd_high)}, and the policy asks for approval over "
            f"{usd_text(over)}: have one of {', '.join(self.approvers)} write approved_by, or make it smaller"
        )

    def _team_limits(self, job: JobSpec) -> tuple[Limits, ...]:
        if not self.teams:
            return ()
        if job.team not in self.teams:
            found = f"team {job.team!r} is not in the policy" if job.team else "the job says no team"
            raise InfeasibleJob(f"{found}; write team: one of {', '.join(sorted(self.teams))}")
        return (self.teams[job.team],)

    def _allows(self, name: str) -> bool:
        allowed = not self.allowed_types or any(fnmatch.fnmatchcase(name, one) for one in self.allowed_types)
        return allowed and not any(fnmatch.fnmatchcase(name, one) for one in self.denied_types)

    def _allowed_words(self) -> str:
        allowed = f"allowed: {', '.join(self.allowed_types)}" if self.allowed_types else "all others are allowed"
        return f"{allowed}, save {', '.join(self.denied_types)}" if self.denied_types else allowed


ALLOW_ALL = Policy()
"""The policy where nobody wrote one."""


def _hold(job: JobSpec, limits: Limits) -> None:
    most = limits.max_accelerators
    if most is not None and job.compute.accelerator is not None and job.compute.count > most:
        raise InfeasibleJob(
            f"compute.count is {job.compute.count} accelerators, the policy allows {most}; write count: {most}"
        )
    if limits.max_hours is not None and job.duration_hours > limits.max_hours:
        raise InfeasibleJob(
            f"duration_hours is {job.duration_hours:g}, the policy allows runs of {limits.max_hours:g} h; write less"
        )
