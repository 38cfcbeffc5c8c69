"""The node's identity: its own, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace_agent.fields import ConfigError
from headrace_agent.identity import await_identity, parse_identity
from tests.agent.surroundings import KEY_TEXT, NODE_ID, PREFIX, RUN_BUCKET, RUN_ID, S3
from tests.agent.works import process_node

KEY = f"{PREFIX}nodes/{NODE_ID}/identity.json"


def text(**changes: Any) -> str:
    return json.dumps({"run_id": RUN_ID, "node_id": NODE_ID, "attempt": 3, "hmac_key": KEY_TEXT} | changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"node_id": "node-b"}, "identity.json belongs to run-1/node-b and this is run-1/node-a"),
        ({"run_id": "run-2"}, "identity.json belongs to run-2/node-a and this is run-1/node-a"),
        ({"hmac_key": "not hex"}, "hmac_key must be hexadecimal"),
        ({"hmac_key": None}, "hmac_key must be text, found null"),
    ],
)
def test_an_identity_that_is_anothers_or_malformed_is_refused(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_identity(text(**changes), process_node(tmp_path))


def test_it_is_waited_for_through_absence_and_nonsense_ever_more_patiently(tmp_path: Path, s3: S3) -> None:
    waited: list[float] = []

    def then(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 2:
            s3.put(RUN_BUCKET, KEY, "{half")
        if len(waited) == 20:
            s3.put(RUN_BUCKET, KEY, text())
        return False

    identity = await_identity(process_node(tmp_path), then)
    assert identity
    assert (identity.attempt, identity.key) == (3, bytes.fromhex(KEY_TEXT))
    assert waited == sorted(waited)
    assert (waited[0], waited[-1], len(waited)) == (0.2, 2.0, 20)


@pytest.mark.usefixtures("s3")
def test_waiting_ends_when_the_agent_is_told_to_leave(tmp_path: Path) -> None:
    assert await_identity(process_node(tmp_path), lambda _: True) is None
