"""The command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_agent import VERSION, commands
from tests.agent.surroundings import AgentNode, config, train_part, volume

REFERENCES = {"SSM_RunId": "run-1", "SSM_ConfigReference": "s3://run-bucket/runs/run-1/"}


@pytest.fixture
def configured(node: AgentNode) -> AgentNode:
    node.write_node_file()
    node.give_config(config(train=train_part(), volumes=[volume(), volume("scratch", kind="scratch")]))
    return node


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        commands.main(["--help"], {})
    text = capsys.readouterr().out
    names = ("serve", "configure", "preflight", "probe", "seal", "health", "release", "stage", "train", "version")
    assert all(name in text for name in (*names, "HEADRACE_NODE_FILE"))


def test_version_needs_no_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["version"], {}) == 0
    assert capsys.readouterr().out == f"headrace-agent {VERSION}\n"


def test_a_machine_that_is_no_node_is_told_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert commands.main(["configure"], {"HEADRACE_NODE_FILE": str(tmp_path / "node.json")}) == 1
    assert "cannot read the node file" in capsys.readouterr().err


def test_configure_on_a_process_node_makes_folders_and_records_the_rest(
    configured: AgentNode, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = configured.environment | REFERENCES
    assert commands.main(["configure"], environ) == 0
    *said, last = capsys.readouterr().out.splitlines()
    assert last == f"configured as a process node: 2 folders made, {len(said)} actions not executed here"
    assert all(line.startswith("not executed here: ") for line in said)
    assert sorted(one.name for one in (configured.folder / "volumes").iterdir()) == ["scratch", "v0"]
    recorded = [json.loads(line) for line in (configured.folder / "not-executed.jsonl").read_text().splitlines()]
    assert [f"not executed here: {one['command']}" for one in recorded] == said


def test_configure_a_second_time_changes_nothing(configured: AgentNode) -> None:
    environ = configured.environment | REFERENCES
    commands.main(["configure"], environ)
    (configured.folder / "volumes/v0/kept").write_text("x")
    recorded = (configured.folder / "not-executed.jsonl").read_text()
    assert commands.main(["configure"], environ) == 0
    assert (configured.folder / "not-executed.jsonl").read_text() == recorded
    assert (configured.folder / "volumes/v0/kept").exists()


def test_printing_shows_the_commands_and_writes_nothing(
    configured: AgentNode, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(configured.folder.rglob("*"))
    assert commands.main(["configure", "--print"], configured.environment) == 0
    assert "mkfs.xfs -q -K -f -m uuid=aaaaaaaa-bbbb-5ccc-8ddd-eeeeeeeeeeee" in capsys.readouterr().out
    assert sorted(configured.folder.rglob("*")) == before


def test_a_configuration_may_be_given_as_a_file(
    configured: AgentNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(config(volumes=[])))
    assert commands.main(["configure", "--print", "--config", str(tmp_path / "mine.json")], configured.environment) == 0
    assert capsys.readouterr().out.startswith("modprobe -a ")


@pytest.mark.parametrize(
    "wrong",
    [{"SSM_RunId": "run-2"}, {"SSM_ConfigReference": "s3://other/runs/run-1/"}, {"SSM_ConfigReference": "s3://x"}],
)
def test_a_document_of_another_run_is_refused(
    configured: AgentNode, wrong: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["configure"], configured.environment | REFERENCES | wrong) == 1
    assert "this node belongs to run run-1 at s3://run-bucket/runs/run-1/" in capsys.readouterr().err
    assert not (configured.folder / "volumes").exists()


def test_another_nodes_configuration_is_refused(node: AgentNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.write_node_file()
    node.give_config(config(node_id="node-b"))
    assert commands.main(["configure"], node.environment) == 1
    assert "config.json is for run-1/node-b and this node is run-1/node-a" in capsys.readouterr().err


def test_an_absent_configuration_is_named(node: AgentNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.write_node_file()
    assert commands.main(["stage"], node.environment) == 1
    told = capsys.readouterr().err
    assert "no configuration at s3://run-bucket/runs/run-1/nodes/node-a/config.json" in told


def test_handing_in_a_task_writes_it_and_returns(configured: AgentNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["train"], configured.environment | REFERENCES) == 0
    (task,) = (configured.folder / "spool").iterdir()
    assert capsys.readouterr().out == f"handed in {task.stem}\n"
    assert json.loads(task.read_text())["kind"] == "train"
