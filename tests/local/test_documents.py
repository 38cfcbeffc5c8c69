"""Documents run as Systems Manager runs them: allowed parameters only, in the node's environment, with true ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from headrace.local.document_file import DocumentRefused, read_document
from headrace.local.documents import LocalDocuments
from headrace.local.marker import marked_processes
from headrace.local.packaged import packaged
from headrace.local.process_nodes import ProcessNodes
from headrace.local.system import SystemEntropy
from headrace.ports import CommandStatus, Node
from tests.local.agents import launch_request, process_nodes
from tests.local.test_process_nodes import NODE
from tests.waiting import wait_until

RUN = NODE.run_id
PARAMETERS = {"RunId": RUN, "ConfigReference": "s3://runs/x/"}


def write_document(folder: Path, name: str, *lines: str, **inputs: object) -> None:
    rule = {"type": "String", "interpolationType": "ENV_VAR"}
    content = {
        "schemaVersion": "2.2",
        "parameters": {
            "RunId": {**rule, "allowedPattern": "^[a-z0-9-]{1,63}$"},
            "ConfigReference": {**rule, "allowedPattern": "^s3://[a-z0-9./-]+$"},
        },
        "mainSteps": [
            {"action": "aws:runShellScript", "name": name, "inputs": {"runCommand": list(lines), **inputs}},
        ],
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "documents"
    made.mkdir()
    return made


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[ProcessNodes]:
    driver = process_nodes(tmp_path, PATH=os.environ["PATH"])
    driver.start(NODE, launch_request(RUN))
    yield driver
    driver.close()


@pytest.fixture
def documents(nodes: ProcessNodes, folder: Path) -> Iterator[LocalDocuments]:
    def listed(_run_id: str) -> tuple[Node, ...]:
        return tuple(
            Node(**{**vars(NODE), "node_id": node_id, "role": role, "life": life})
            for node_id, role, life in (
                ("i-1", "storage", "running"),
                ("i-2", "storage", "terminated"),
                ("i-3", "compute", "running"),
            )
        )

    port = LocalDocuments(nodes, listed, SystemEntropy(), folder)
    yield port
    port.close()


def finished(documents: LocalDocuments, command_id: str) -> CommandStatus:
    wait_until(lambda: not documents.command_status(command_id).pending)
    return documents.command_status(command_id)


def test_the_line_runs_in_the_environment_of_the_node(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "show", 'echo "$HEADRACE_NODE $SSM_RunId {{ConfigReference}}"; exit 3')
    status = finished(documents, documents.send("show", RUN, "storage", PARAMETERS))
    assert status.failed == {"i-1": f"exit code 3: i-1 {RUN} s3://runs/x/"}
    assert status.succeeded == frozenset()


def test_success_is_the_exit_code(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "fine", "echo error >&2")
    assert finished(documents, documents.send("fine", RUN, "storage", PARAMETERS)).succeeded == {"i-1"}


def test_a_running_line_is_pending(documents: LocalDocuments, folder: Path, nodes: ProcessNodes) -> None:
    write_document(folder, "waits", "while [ ! -e go ]; do sleep 0.02; done")
    command_id = documents.send("waits", RUN, "storage", PARAMETERS)
    assert documents.command_status(command_id) == CommandStatus(frozenset(), frozenset({"i-1"}), {})
    (nodes.folder(RUN, "i-1") / "go").touch()
    assert finished(documents, command_id).succeeded == {"i-1"}


def test_a_line_that_outlives_its_time_out_fails_and_is_ended(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "hangs", "echo started; exec sleep 600", timeoutSeconds="0")
    status = finished(documents, documents.send("hangs", RUN, "storage", PARAMETERS))
    assert status.failed["i-1"].startswith("timed out")
    assert not any("SSM_RunId" in environment for environment in marked_processes({"HEADRACE_RUN": RUN}).values())


def test_only_nodes_of_the_role_with_an_agent_are_reached(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "fine", "true")
    assert documents.online(RUN, "storage") == {"i-1"}
    assert documents.online(RUN, "compute") == frozenset(), "i-3 is listed and has no agent"
    status = documents.command_status(documents.send("fine", RUN, "compute", PARAMETERS))
    assert status == CommandStatus(frozenset(), frozenset(), {})


@pytest.mark.parametrize(
    "value", ["job 1", "job;reboot", "$(reboot)", "job\n", "", "{{ssm:secret}}", "job'", "JOB", "a" * 64]
)
def test_a_parameter_outside_its_pattern_runs_nothing(
    documents: LocalDocuments, folder: Path, nodes: ProcessNodes, value: str
) -> None:
    write_document(folder, "touches", "touch ran")
    with pytest.raises(DocumentRefused, match="RunId"):
        documents.send("touches", RUN, "storage", {**PARAMETERS, "RunId": value})
    assert not (nodes.folder(RUN, "i-1") / "ran").exists()
    assert not (nodes.folder(RUN, "i-1") / "log" / "documents").exists()


def test_unknown_and_missing_parameters_are_refused(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "fine", "true")
    with pytest.raises(DocumentRefused, match=r"no parameter 'Extra'; it has RunId, ConfigReference"):
        documents.send("fine", RUN, "storage", {**PARAMETERS, "Extra": "x"})
    with pytest.raises(DocumentRefused, match="needs the parameter 'ConfigReference'"):
        documents.send("fine", RUN, "storage", {"RunId": RUN})


def test_an_unknown_document_is_refused_with_those_there_are(documents: LocalDocuments, folder: Path) -> None:
    write_document(folder, "fine", "true")
    with pytest.raises(DocumentRefused, match="'fin'; there are: fine"):
        documents.send("fin", RUN, "storage", PARAMETERS)


def test_an_unknown_command_is_an_error(documents: LocalDocuments) -> None:
    with pytest.raises(ValueError, match="no command has the id"):
        documents.command_status("x")


def test_a_document_without_a_pattern_is_refused(folder: Path) -> None:
    write_document(folder, "open", "true")
    text = (folder / "open.yaml").read_text().replace("allowedPattern", "description")
    (folder / "open.yaml").write_text(text)
    with pytest.raises(DocumentRefused, match="allowedPattern"):
        read_document(folder, "open")


def test_every_packaged_document_can_be_read() -> None:
    names = sorted(path.stem for path in packaged("documents").glob("*.yaml"))
    assert {"configure-storage", "configure-compute", "stage-dataset", "train-job"} <= set(names)
    for name in names:
        assert read_document(packaged("documents"), name).script.startswith("headrace-agent ")
