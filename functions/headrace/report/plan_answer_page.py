"""The answer of `headrace plan` as a page: the plan, or what was asked about it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from headrace.domain.plan_answer import PlanAnswer
from headrace.domain.what_if import Variant
from headrace.domain.why import WhyType
from headrace.report.cells import bullets, cell, section, table
from headrace.report.plan_page import plan_page
from headrace.report.quantities import usd_text


def plan_answer_page(answer: PlanAnswer) -> RenderableType:
    """Return the plan with what was asked about it; a table of variants stands alone."""
    return Group(*_parts(answer))


def _parts(answer: PlanAnswer) -> Iterator[RenderableType]:
    if not answer.what_if:
        yield plan_page(answer.plan)
    for one in answer.why:
        yield section(_title(one), bullets(one.reasons))
    if answer.what_if:
        yield cell(f"what if, for {answer.plan.job_name} in {answer.plan.region}", "bold")
        yield _variants(answer.what_if)
        yield from _refusals(answer.what_if)


def _title(one: WhyType) -> str:
    return f"why {one.instance_type}" if one.chosen_as else f"why not {one.instance_type}"


def _variants(variants: tuple[Variant, ...]) -> Table:
    fields = tuple(variants[0].changes)
    made = table(*fields, "storage", "machines", "USD/h", "USD", "bound by", right=("USD/h",))
    for one in variants:
        values = tuple(one.changes[field] for field in fields)
        made.add_row(*map(cell, (*values, *_outcome(one))))
    return made


def _outcome(one: Variant) -> tuple[str, ...]:
    if one.limit is None or one.usd_per_hour is None or one.usd_low is None or one.usd_high is None:
        return ("refused", "", "", "", "")
    run, hour = (usd_text(usd).removesuffix(" USD") for usd in (one.usd_low, one.usd_per_hour))
    cost = f"{run} to {usd_text(one.usd_high).removesuffix(' USD')}"
    return one.storage, ", ".join(one.machines), hour, cost, one.limit.name


def _refusals(variants: tuple[Variant, ...]) -> Iterator[RenderableType]:
    lines = []
    for one in variants:
        if one.refused:
            changes = ", ".join(f"{field}={value}" for field, value in one.changes.items())
            lines.append(f"{changes}: {one.refused}")
    if lines:
        yield section("refused", bullets(lines))
