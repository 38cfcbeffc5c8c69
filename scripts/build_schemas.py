"""Writes the JSON Schema of every contract to functions/headrace/schemas, for editors and for other programs.

Usage: python scripts/build_schemas.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from headrace.domain.dataset import DatasetPart
from headrace.domain.event_bodies import BODIES
from headrace.domain.events import EventDetail
from headrace.domain.job_text import job_schema
from headrace.domain.nodeconfig import NodeConfig
from headrace.domain.plan import Plan
from headrace.domain.plan_answer import PlanAnswer
from headrace.domain.receipt import Receipt
from headrace.domain.replay import Replay
from headrace.domain.results import ResultsManifest

TARGET = Path(__file__).resolve().parent.parent / "functions" / "headrace" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONTRACTS: dict[str, type[BaseModel]] = {
    "plan": Plan,
    "plan-answer": PlanAnswer,
    "replay": Replay,
    "node-config": NodeConfig,
    "event-detail": EventDetail,
    "results-manifest": ResultsManifest,
    "receipt": Receipt,
    "dataset-part": DatasetPart,
}


def schemas() -> dict[str, str]:
    """Return the text of each schema file by its name."""
    made: dict[str, dict[str, Any]] = {"job": job_schema(), "event-bodies": event_bodies()}
    made |= {name: {"$schema": DIALECT, **model.model_json_schema()} for name, model in CONTRACTS.items()}
    return {f"{name}.json": json.dumps(schema, indent=2) + "\n" for name, schema in made.items()}


def event_bodies() -> dict[str, Any]:
    """Return the schema of an event with its detail-type and body, one branch for each type."""
    references, shared = models_json_schema([(model, "validation") for model in BODIES.values()])
    branches = [
        {
            "properties": {"detail-type": {"const": name}, "body": references[model, "validation"]},
            "required": ["detail-type", "body"],
        }
        for name, model in BODIES.items()
    ]
    return {"$schema": DIALECT, "title": "Event bodies", "oneOf": branches, "$defs": shared["$defs"]}


def main() -> None:
    """Write the files."""
    TARGET.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (TARGET / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(schemas())} schemas to {TARGET}")


if __name__ == "__main__":
    main()
