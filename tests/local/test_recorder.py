"""The record of a run is the same for the same run, differs when anything differs, and holds no secret."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.errors import ObjectMissing
from headrace.local.bus import LocalBus
from headrace.local.no_checks import NoChecks
from headrace.local.recorder import digest, recorded
from headrace.local.settings import local_settings
from headrace.local.simulated.memory import MemoryObjects, MemoryRuns
from headrace.local.system import SystemClock, SystemEntropy
from headrace.ports import Cloud, LaunchResult, Node
from tests.local.test_process_nodes import NODE


class Standing:
    """A clock and a source of keys that never move, and fleets of one node."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def token_hex(self, size_bytes: int) -> str:
        return "5ec2e7" * size_bytes

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        return (NODE,) if run_id == NODE.run_id else ()


def cloud(standing: Standing) -> Cloud:
    ports = dict.fromkeys(("nodes", "executions", "prices"), standing)
    return Cloud(
        **ports,  # type: ignore[arg-type]
        fleets=standing,  # type: ignore[arg-type]
        objects=MemoryObjects(),
        bus=LocalBus(lambda _event: None, SystemClock(), SystemEntropy()),
        runs=MemoryRuns(),
        clock=standing,
        entropy=standing,
        settings=local_settings(),
        checks=NoChecks(),
        elsewhere=MemoryObjects(),
    )


def record(body: bytes = b"{}") -> list[str]:
    lines: list[str] = []
    watched = recorded(cloud(Standing()), lines.append)
    watched.runs.insert("job-1", "run", "run", {"at": watched.clock.now().isoformat()})
    watched.objects.put("runs", "key", body)
    watched.objects.put("runs", "secret", watched.entropy.token_hex(32).encode())
    with pytest.raises(ObjectMissing):
        watched.objects.get("runs", "absent")
    assert watched.fleets.list_nodes(NODE.run_id) == (NODE,)
    assert list(watched.runs.run_ids()) == ["job-1"]
    return lines


def test_the_same_calls_give_the_same_record() -> None:
    assert record() == record()


def test_a_different_byte_gives_a_different_record() -> None:
    one, other = record(), record(b"{ }")
    assert [number for number, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]] == [2]


def test_each_call_is_a_line_with_its_port_and_method() -> None:
    lines = [json.loads(line) for line in record()]
    assert [(line["call"], line["port"], line["method"]) for line in lines] == [
        (1, "clock", "now"),
        (2, "runs", "insert"),
        (3, "objects", "put"),
        (4, "entropy", "token_hex"),
        (5, "objects", "put"),
        (6, "objects", "get"),
        (7, "fleets", "list_nodes"),
        (8, "runs", "run_ids"),
    ]
    assert lines[5]["raised"] == "ObjectMissing"


def test_no_value_gets_into_the_record() -> None:
    assert "5ec2e7" not in "".join(record())


def test_settings_are_those_of_the_cloud() -> None:
    plain = cloud(Standing())
    assert recorded(plain, lambda _line: None).settings is plain.settings


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(json_values, json_values)
def test_the_order_of_keys_does_not_count_and_everything_else_does(one: object, other: object) -> None:
    assert digest({"a": one, "b": other}) == digest({"b": other, "a": one})
    assert (digest({"a": one, "b": other}) == digest({"a": other, "b": one})) == (digest(one) == digest(other))


@given(st.text() | st.binary() | st.integers(), st.text() | st.binary() | st.integers())
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert (digest(one) == digest(other)) == (one == other)


def test_sets_and_records_have_digests() -> None:
    assert digest(frozenset({"a", "b"})) == digest(frozenset({"b", "a"}))
    assert digest(LaunchResult((NODE,), ())) != digest(LaunchResult((), ()))


def test_what_cannot_be_recorded_is_an_error() -> None:
    with pytest.raises(TypeError, match="object crosses a port"):
        digest(object())
