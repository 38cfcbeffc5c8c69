"""Makes simulated runs cheaper without changing what they do: what was parsed or planned before is not again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest.mock import patch

from pydantic import BaseModel

from headrace.domain.dataset import DatasetPart, DatasetSummary
from headrace.domain.job import JobSpec
from headrace.domain.nodeconfig import Identity, Lease, NodeConfig
from headrace.domain.plan import Plan
from headrace.domain.planning import MarketOf, plan_under
from headrace.domain.policy import Policy
from headrace.domain.receipt import Receipt
from headrace.domain.results import ResultsManifest, ResultsPart
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers import plan_layout
from headrace.local.simulated.memory import MemoryRuns

_FROM_TEXT: tuple[type[BaseModel], ...] = (
    *(DatasetPart, DatasetSummary, JobSpec, Identity, Lease, NodeConfig, Plan, Receipt, ResultsManifest, ResultsPart),
)
_FROM_ITEM: tuple[type[BaseModel], ...] = (NodeRow, RunRow)
_KEPT_MAX = 20_000
RARELY = (10_000, 5, 5)
"""Garbage collector thresholds: a run is one big cycle, best freed after a few runs, when it is still in the cache."""


def _refuse(*_what: Any, **_more: Any) -> NoReturn:
    raise TypeError("what was read from the run table belongs to the table here; copy it before changing it")


class Item(dict[str, Any]):
    """A version of an item of the run table, which nothing changes; `model` is what it was found to be when checked."""

    __slots__ = ("model",)

    model: BaseModel | None
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class RememberingRuns(MemoryRuns):
    """The run table, of which each version of a row is checked once; readers are given the version itself."""

    def _kept(self, item: dict[str, Any]) -> Item:
        kept = Item(item)
        kept.model = None
        return kept

    def _copied(self, item: dict[str, Any]) -> dict[str, Any]:
        return item


@contextmanager
def parsed_once() -> Iterator[None]:
    """Within, frozen models are kept by the text, the item or the models they were made of.

    Garbage is looked for seldom.
    """
    kept: dict[Any, Any] = {}
    for model in _FROM_TEXT:
        model.model_validate_json = _by_text(model, kept)  # type: ignore[method-assign]
    for model in _FROM_ITEM:
        model.model_validate = _by_item(model)  # type: ignore[method-assign]
    thresholds = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        with patch.object(plan_layout, "plan_under", _by_identity(plan_under)):
            yield
    finally:
        gc.set_threshold(*thresholds)
        for model in _FROM_TEXT:
            del model.model_validate_json
        for model in _FROM_ITEM:
            del model.model_validate


def _by_text(model: type[BaseModel], kept: dict[Any, Any]) -> Any:
    validate = model.model_validate_json

    def validated(text: str | bytes) -> Any:
        found = kept.get((model, text))
        if found is None:
            if len(kept) > _KEPT_MAX:
                kept.clear()
            found = kept[model, text] = validate(text)
        return found

    return validated


def _by_identity(make: Callable[..., Plan]) -> Callable[..., Plan]:
    """Return a planner that plans once for the same frozen models, which it keeps, so that none takes their id."""
    kept: dict[tuple[int, ...], tuple[Any, Plan]] = {}

    def made(policy: Policy, job: JobSpec, dataset: DatasetSummary, market_of: MarketOf) -> Plan:
        given = (policy, job, dataset, *market_of(job.region))
        key = tuple(map(id, given))
        if key not in kept:
            kept[key] = (given, make(policy, job, dataset, market_of))
        return kept[key][1]

    return made


def _by_item(model: type[BaseModel]) -> Any:
    validate = model.model_validate

    def validated(item: Mapping[str, Any]) -> Any:
        if not isinstance(item, Item):
            return validate(item)
        if item.model is None:
            item.model = validate(item)
        return item.model

    return validated
