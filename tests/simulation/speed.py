"""Makes simulated runs cheaper without changing what they do: texts parsed before are not parsed again."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from headrace.domain.dataset import DatasetPart, DatasetSummary
from headrace.domain.job import JobSpec
from headrace.domain.nodeconfig import Identity, Lease, NodeConfig
from headrace.domain.plan import Plan
from headrace.domain.receipt import Receipt
from headrace.domain.results import ResultsManifest, ResultsPart
from headrace.domain.run import NodeRow, RunRow
from headrace.local.simulated.memory import MemoryRuns

_FROM_TEXT: tuple[type[BaseModel], ...] = (
    *(DatasetPart, DatasetSummary, JobSpec, Identity, Lease, NodeConfig, Plan, Receipt, ResultsManifest, ResultsPart),
)
_FROM_ITEM: tuple[type[BaseModel], ...] = (NodeRow, RunRow)
_KEPT_MAX = 20_000
RARELY = (100_000, 5, 5)
"""Garbage collector thresholds: a run is one big cycle, which is to be freed after a few runs."""


class Item(dict[str, Any]):
    """An item of the run table that still knows its text, by which its model is found again."""

    text: str = ""


class RememberingRuns(MemoryRuns):
    """The run table, of which each text is parsed once; what is read is a copy of the outermost level."""

    def __init__(self) -> None:
        super().__init__()
        self._parsed: dict[str, dict[str, Any]] = {}

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Any] | None:
        text = self._texts.get(run_id, {}).get(kind, {}).get(name)
        return None if text is None else self._item(text)

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Any], ...]:
        texts = self._texts.get(run_id, {}).get(kind, {})
        return tuple(self._item(texts[name]) for name in sorted(texts))

    def _item(self, text: str) -> Item:
        parsed = self._parsed.get(text)
        if parsed is None:
            parsed = self._parsed[text] = json.loads(text)
        item = Item(parsed)
        item.text = text
        return item


@contextmanager
def parsed_once() -> Iterator[None]:
    """Within, frozen models are kept by the text they were made of, and garbage is looked for seldom."""
    kept: dict[Any, Any] = {}
    for model in _FROM_TEXT:
        model.model_validate_json = _by_text(model, kept)  # type: ignore[method-assign]
    for model in _FROM_ITEM:
        model.model_validate = _by_item(model, kept)  # type: ignore[method-assign]
    thresholds = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
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


def _by_item(model: type[BaseModel], kept: dict[Any, Any]) -> Any:
    validate = model.model_validate

    def validated(item: Mapping[str, Any]) -> Any:
        text = getattr(item, "text", None)
        if text is None:
            return validate(item)
        found = kept.get((model, text))
        if found is None:
            if len(kept) > _KEPT_MAX:
                kept.clear()
            found = kept[model, text] = validate(item)
        return found

    return validated
