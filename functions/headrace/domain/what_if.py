"""Plans a job again with some of its fields changed, every value with every other, to see what each would cost."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.domain.errors import BadJob, InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.job_text import job_from_mapping
from headrace.domain.model import Contract, Seconds
from headrace.domain.plan import BindingLimit, Plan

VARIANTS_MAX = 256
FIELDS: dict[str, tuple[str, ...]] = {
    "accelerator": ("compute", "accelerator"),
    "budget_usd": ("budget_usd",),
    "capacity": ("compute", "capacity"),
    "count": ("compute", "count"),
    "duration_hours": ("duration_hours",),
    "fabric": ("fabric",),
    "instance_type": ("compute", "instance_type"),
    "max_hours": ("max_hours",),
    "on_node_loss": ("on_node_loss",),
    "read_bytes_per_s": ("demand", "read_bytes_per_s"),
    "region": ("compute", "region"),
    "resilience": ("resilience",),
    "storage": ("storage",),
    "storage_nodes": ("storage_nodes",),
    "workload": ("demand", "workload"),
}
"""What may be changed, and where it stands in a job."""
_EXCLUDES: dict[str, tuple[str, ...]] = {
    "accelerator": ("instance_type",),
    "instance_type": ("accelerator",),
    "workload": ("read_bytes_per_s", "samples_per_s", "sample_bytes"),
    "read_bytes_per_s": ("workload", "samples_per_s", "sample_bytes"),
}

Asked = Sequence[tuple[str, tuple[str, ...]]]


class Variant(Contract):
    """The job with some fields changed: its plan in short, or why there is none."""

    changes: dict[str, str]
    storage: str = ""
    machines: tuple[str, ...] = ()
    fabric: str = ""
    usd_per_hour: float | None = None
    usd_low: float | None = None
    usd_high: float | None = None
    eta_s: Seconds | None = None
    limit: BindingLimit | None = None
    refused: str = ""


def asked_of(words: Sequence[str]) -> Asked:
    """Return the fields and values of words such as `count=2,4,8`. Raises BadJob for a field that is not known."""
    return [_asked(word) for word in words]


def _asked(word: str) -> tuple[str, tuple[str, ...]]:
    field, equals, values = word.partition("=")
    field = field.strip()
    if field not in FIELDS:
        raise BadJob((f"--what-if {word}: {field!r} cannot be varied; known: {', '.join(FIELDS)}",))
    given = tuple(one.strip() for one in values.split(",") if one.strip())
    if not equals or not given:
        raise BadJob((f"--what-if {word}: write the values after '=', such as {field}=1,2",))
    return field, given


def what_if(job: JobSpec, asked: Asked, plan_of: Callable[[JobSpec], Plan]) -> tuple[Variant, ...]:
    """Return every combination of the values asked for, planned. Raises BadJob for a value that no job may have."""
    fields = [field for field, _ in asked]
    combinations = list(itertools.product(*(values for _, values in asked)))
    if len(combinations) > VARIANTS_MAX:
        raise BadJob((f"--what-if asks for {len(combinations):,} plans, more than {VARIANTS_MAX}; give fewer values",))
    return tuple(_variant(job, dict(zip(fields, values, strict=True)), plan_of) for values in combinations)


def _variant(job: JobSpec, changes: dict[str, str], plan_of: Callable[[JobSpec], Plan]) -> Variant:
    try:
        chosen = plan_of(changed(job, changes)).chosen
    except InfeasibleJob as refusal:
        return Variant(changes=changes, refused=str(refusal))
    return Variant(
        changes=changes,
        storage=chosen.storage,
        machines=tuple(f"{fleet.count} x {fleet.instance_type}" for fleet in chosen.fleets),
        fabric=chosen.fabric,
        usd_per_hour=chosen.usd_per_hour,
        usd_low=chosen.usd_low,
        usd_high=chosen.usd_high,
        eta_s=round(sum(phase.eta_s for phase in chosen.phases), 1),
        limit=chosen.limit,
    )


def changed(job: JobSpec, changes: Mapping[str, str]) -> JobSpec:
    """Return the job with these fields changed, and without those that they replace. Raises BadJob."""
    given: dict[str, Any] = job.model_dump(mode="json", exclude_unset=True)
    for field, text in changes.items():
        *folders, key = FIELDS[field]
        place = given
        for folder in folders:
            place = place.setdefault(folder, {})
        for other in _EXCLUDES.get(field, ()):
            place.pop(other, None)
        place[key] = _value(text)
    return job_from_mapping(given)


def _value(text: str) -> Any:
    """Return the number that the text is, or the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text
