"""The simulated agent leads the life that the real one was seen to lead: the same events in the same order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulated_runs import events_of, job, simulated_site

GOOD_LIFE: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "agent" / "good_life.json").read_text())
"""What `tests/agent/test_lifecycle.py` holds the real agent to."""


@pytest.mark.parametrize(
    ("life", "role", "changes"),
    [
        ("storage", "storage", {}),
        ("compute", "compute", {}),
        (
            "storage and compute in one",
            "compute",
            {"storage": "local", "storage_nodes": None, "compute": {"instance_type": "i4i.large"}},
        ),
    ],
)
def test_a_good_life_is_the_same_simulated(life: str, role: str, changes: dict[str, Any]) -> None:
    with simulated_site() as site:
        assert site.run(job(**changes)).status == "SUCCEEDED"
        assert events_of(site, role) == GOOD_LIFE[life]
