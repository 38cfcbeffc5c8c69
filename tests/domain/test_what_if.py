"""A job is planned again with other values, each with each other."""

from __future__ import annotations

import pytest

from headrace.domain.errors import BadJob
from headrace.domain.job import JobSpec
from headrace.domain.plan import Plan
from headrace.domain.planner import plan
from headrace.domain.what_if import VARIANTS_MAX, Variant, asked_of, changed, what_if
from tests.domain.small_world import GB, SMALL, dataset, job


def planned(spec: JobSpec) -> Plan:
    return plan(spec, dataset(), *SMALL)


def variants(spec: JobSpec, *words: str) -> tuple[Variant, ...]:
    return what_if(spec, asked_of(words), planned)


def test_every_value_is_planned_with_every_other() -> None:
    found = variants(job(), "count=1,2,4", "fabric=roce,tcp")
    assert [one.changes for one in found][:3] == [
        {"count": "1", "fabric": "roce"},
        {"count": "1", "fabric": "tcp"},
        {"count": "2", "fabric": "roce"},
    ]
    assert len(found) == 6
    assert [one.fabric for one in found[:2]] == ["roce", "tcp"]


def test_each_variant_costs_what_a_plan_of_the_changed_job_costs() -> None:
    spec = job(demand={"read_bytes_per_s": 6 * GB})
    (found,) = variants(spec, "count=3")
    made = planned(job(demand={"read_bytes_per_s": 6 * GB}, compute={"instance_type": "cpu.large", "count": 3})).chosen
    assert (found.usd_low, found.usd_high, found.limit) == (made.usd_low, made.usd_high, made.limit)


def test_a_variant_that_cannot_be_planned_says_why_and_the_others_stand() -> None:
    found = variants(job(), "instance_type=cpu.large,cpu.larger")
    assert found[0].refused == ""
    assert "close: cpu.large" in found[1].refused


def test_a_field_takes_the_place_of_those_that_it_excludes() -> None:
    spec = changed(job(demand={"read_bytes_per_s": GB}), {"accelerator": "h100", "workload": "unet3d"})
    assert (spec.compute.instance_type, spec.compute.accelerator) == (None, "h100")
    assert (spec.demand.read_bytes_per_s, spec.demand.workload) == (None, "unet3d")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("colour=red", "'colour' cannot be varied; known: accelerator, budget_usd"),
        ("count", "write the values after '=', such as count=1,2"),
        ("count=", "write the values after '='"),
    ],
)
def test_words_that_change_nothing_are_refused(word: str, said: str) -> None:
    with pytest.raises(BadJob, match=said):
        asked_of([word])


def test_values_that_no_job_may_have_are_refused_with_the_field() -> None:
    with pytest.raises(BadJob, match=r"compute\.count"):
        variants(job(), "count=0")


def test_more_combinations_than_anyone_reads_are_refused() -> None:
    many = ",".join(str(number) for number in range(1, VARIANTS_MAX + 2))
    with pytest.raises(BadJob, match="give fewer values"):
        variants(job(), f"count={many}")
