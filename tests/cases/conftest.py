"""A machine as a cloud lists it, and the surroundings that the agent's own tests have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.ports import Node
from tests.agent.conftest import bus, node, s3, s3_url

__all__ = ["bus", "machine", "node", "s3", "s3_url"]


@pytest.fixture
def machine() -> Node:
    return Node(
        node_id="i-0a",
        run_id="run-1",
        role="storage",
        instance_type="i4i.large",
        zone="zone-a",
        address="127.0.0.1",
        life="running",
        launched_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
