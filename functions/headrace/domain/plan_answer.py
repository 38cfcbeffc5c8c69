"""What `headrace plan --json` answers: the plan, why a type is in it or not, and the job with fields changed."""

from __future__ import annotations

from headrace.domain.model import Contract
from headrace.domain.plan import Plan
from headrace.domain.what_if import Variant
from headrace.domain.why import WhyType


class PlanAnswer(Contract):
    """One answer; what was not asked for is empty."""

    plan: Plan
    why: tuple[WhyType, ...] = ()
    what_if: tuple[Variant, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know before a run, such as why a run of this job would be refused."""
