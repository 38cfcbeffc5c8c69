"""What the agent knows of the data path between two looks, and says with each heartbeat."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from headrace_agent import health_watch
from headrace_agent.config import NodeConfig
from headrace_agent.health_watch import MEMBERS_AT_ONCE, TOLD_MAX, HealthWatch
from headrace_agent.telemetry import heartbeat
from tests.agent.fabric_configs import of, uuid_of
from tests.agent.surroundings import config


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of what a look finds."""
    made: list[str] = []
    monkeypatch.setattr(health_watch, "troubles", lambda *_: list(made))
    return made


def test_troubles_are_told_with_every_heartbeat_until_they_are_gone(tmp_path: Path, found: list[str]) -> None:
    watch = HealthWatch(tmp_path / "configured.json", tmp_path)
    found.append("volume v0 is not mounted")
    watch.look()
    assert watch.told == ()
    (tmp_path / "configured.json").write_text(json.dumps(config()))
    watch.look()
    assert heartbeat("training", 0, watch.told)["troubles"] == ["volume v0 is not mounted"]
    found.clear()
    watch.look()
    assert "troubles" not in heartbeat("training", 0, watch.told)


def test_few_are_told_and_none_at_length(tmp_path: Path, found: list[str]) -> None:
    (tmp_path / "configured.json").write_text(json.dumps(config()))
    found += ["x" * 5000] * 50
    watch = HealthWatch(tmp_path / "configured.json", tmp_path)
    watch.look()
    assert [len(one) for one in watch.told] == [health_watch.LINE_CHARACTERS] * TOLD_MAX


def test_many_members_take_turns_and_none_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[set[str]] = []

    def note(_config: NodeConfig, _volumes: Path, members: Collection[str]) -> list[str]:
        rounds.append(set(members))
        return []

    monkeypatch.setattr(health_watch, "troubles", note)
    slices = [uuid_of("v0", 0, number) for number in range(80)]
    (tmp_path / "configured.json").write_text(json.dumps(config(volumes=[of("v0", slices)])))
    watch = HealthWatch(tmp_path / "configured.json", tmp_path)
    for _ in range(3):
        watch.look()
    assert max(map(len, rounds)) == MEMBERS_AT_ONCE
    assert set().union(*rounds) == set(slices)
