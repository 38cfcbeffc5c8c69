"""Reading config.json and node.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace_agent.config import parse_config
from headrace_agent.fields import ConfigError
from headrace_agent.node import load_node, parse_node
from tests.agent.surroundings import config, train_part


def parsed(**changes: Any) -> Any:
    return parse_config(json.dumps(config(**changes)))


def test_a_whole_configuration_is_read() -> None:
    read = parsed(train=train_part(command=["python", "train.py"], rendezvous_address="10.0.0.1"))
    assert read.volumes[0].stripe_unit_bytes == 131072
    assert read.train.command == ("python", "train.py")
    assert read.stage is None


def test_another_version_is_refused_with_both_versions_and_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"has version 2 and this agent knows version 1; install the agent"):
        parsed(version=2)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"attempt": "1"}, r"config.json: attempt must be a whole number, found str"),
        ({"attempt": True}, r"config.json: attempt must be a whole number, found True"),
        ({"attempt": 1.5}, r"config.json: attempt must be a whole number, found 1.5"),
        ({"heartbeat_seconds": True}, r"heartbeat_seconds must be a number, found True"),
        ({"volumes": {}}, r"config.json: volumes must be a list, found dict"),
        ({"volumes": ["v"]}, r"config.json: volumes\[0\] must be an object, found str"),
        ({"train": train_part(command=[1])}, r"config.json: train: command must hold texts only"),
        ({"train": train_part(variables={"A": 1})}, r"config.json: train: variables must hold texts only"),
        ({"train": {}}, r"config.json: train: command is missing"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parsed(**changes)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not JSON|must be an object"):
        parse_config(text)


def test_unknown_fields_are_left_alone_so_that_a_control_plane_may_add_some() -> None:
    assert parsed(added_later=1) == parsed()


def node_text(**changes: Any) -> str:
    values: dict[str, Any] = {
        "run_id": "r",
        "node_id": "n",
        "role": "storage",
        "attempt": 1,
        "run_bucket": "b",
        "event_bus": "e",
        "process_node": False,
        "deadline_at": "2026-12-01T00:00:00Z",
        "folder": "/var/lib/headrace",
    }
    return json.dumps(values | changes)


def test_a_node_file_tells_who_and_where() -> None:
    node = parse_node(node_text(), "node.json")
    assert node.own_prefix == "runs/r/nodes/n/"
    assert (node.data, node.idle_heartbeat_seconds) == (Path("/data"), 15.0)
    assert parse_node(node_text(process_node=True), "node.json").data == Path("/var/lib/headrace/data")


def test_a_machine_on_aws_has_the_folder_that_its_credentials_are_named_for() -> None:
    node = parse_node(node_text(node_folder="AROA1:i-1"), "node.json")
    assert node.own_prefix == "runs/r/nodes/AROA1:i-1/"


def test_a_deadline_without_a_zone_is_in_utc() -> None:
    with_zone, without = node_text(), node_text(deadline_at="2026-12-01T00:00:00")
    assert parse_node(with_zone, "n").deadline_at == parse_node(without, "n").deadline_at


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"node_folder": "a/b"}, "node_folder must be one step of a key"),
        ({"node_folder": ".."}, "node_folder must be one step of a key"),
        ({"deadline_at": "soon"}, "ISO 8601 instant"),
        ({"folder": "relative"}, "folder must be an absolute path"),
    ],
)
def test_a_wrong_node_file_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_node(node_text(**changes), "node.json")


def test_an_absent_node_file_is_named_with_the_variable_that_changes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the node file .*absent.json .*HEADRACE_NODE_FILE"):
        load_node({"HEADRACE_NODE_FILE": str(tmp_path / "absent.json")})
