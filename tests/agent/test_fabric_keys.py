"""Keys come from the node's own folder, and a node that cannot show one where it must is told what to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_agent import configure as configuring
from headrace_agent import fabric_keys, machine
from headrace_agent.config import NodeConfig
from headrace_agent.configure import configure
from headrace_agent.fabric_keys import FabricKeys, host_key, read_keys
from headrace_agent.fields import ConfigError
from headrace_agent.machine import can_show_keys
from headrace_agent.node import Node
from tests.agent.fabric_configs import HOSTS, compute, mirror_holder, storage
from tests.agent.works import process_node

OWN = bytes(range(32))
KEYS = [
    {"address": "10.0.1.1", "key": "DHHC-1:01:a:", "is_demanded": True},
    {"address": "10.0.1.2", "key": "DHHC-1:01:b:", "is_demanded": False},
]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a node whose folder in the bucket holds an identity and keys to show."""
    made = process_node(tmp_path)
    identity = {"run_id": made.run_id, "node_id": made.node_id, "attempt": 1, "hmac_key": OWN.hex()}
    stored = {"identity.json": identity, "fabric.json": {"keys": KEYS}}
    monkeypatch.setattr(fabric_keys, "_own", lambda _node, name: json.dumps(stored[name]).encode())
    return made


def test_who_serves_demands_and_who_reads_shows(node: Node) -> None:
    assert read_keys(node, storage()).by_name == {host: host_key(OWN, host) for host in HOSTS}
    shown = read_keys(node, compute())
    assert shown == FabricKeys(
        {"10.0.1.1": "DHHC-1:01:a:", "10.0.1.2": "DHHC-1:01:b:"},
        shown=frozenset({"10.0.1.1", "10.0.1.2"}),
        demanded=frozenset({"10.0.1.1"}),
    )
    assert set(read_keys(node, mirror_holder()).by_name) == {*HOSTS, "10.0.1.1", "10.0.1.2"}
    assert "DHHC" not in repr(shown)


def test_where_a_key_is_demanded_a_kernel_that_has_none_to_show_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_missing(_node: Node, _config: NodeConfig) -> None:
        return

    monkeypatch.setattr(configuring, "check_abilities", not_missing)
    monkeypatch.setattr(configuring, "can_show_keys", lambda: False)
    object.__setattr__(node, "process_node", False)
    told: list[str] = []
    with pytest.raises(ConfigError, match=r"cannot prove who it is.*NVME_HOST_AUTH.*at 10\.0\.1\.1 admit"):
        configure(node, compute(), told.append)
    assert told == []


@pytest.mark.parametrize(
    ("module", "listed", "can"),
    [
        ("nvme-auth", "transport=%s,dhchap_secret=%s\n", True),
        ("nvme-common", "transport=%s,dhchap_secret=%s\n", True),
        ("nvme-auth", "transport=%s\n", False),
        ("none", "transport=%s,dhchap_secret=%s\n", False),
    ],
)
def test_a_kernel_can_show_a_key_when_it_has_the_option_and_what_the_option_needs(
    module: str, listed: str, can: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "can_load", lambda name: name == module)
    (tmp_path / "nvme-fabrics").write_text(listed)
    assert can_show_keys(tmp_path / "nvme-fabrics") is can
