"""Field complaints about documents run on machines: late, answered in part, never run (reference/cases.csv)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.local.documents import TAIL_BYTES, LocalDocuments
from headrace.local.system import SystemEntropy
from headrace.ports import CommandStatus, Node
from tests.cases.troubles import launched
from tests.simulated_runs import job, machines_alive, receipt_of, simulated_site
from tests.waiting import wait_until

NOTHING_YET = CommandStatus(frozenset(), frozenset(), {})


def test_r041_a_machine_that_registers_after_four_minutes_is_waited_for() -> None:
    with simulated_site() as site:
        site.nodes.deregister(240)
        assert site.run(job()).status == "SUCCEEDED"


def test_r041_a_machine_that_never_registers_is_terminated_and_the_reason_said() -> None:
    with simulated_site() as site:
        site.nodes.deregister(10**6)
        assert site.run(job()).status == "FAILED"
        assert "not ready" in str(receipt_of(site).reason)
        assert machines_alive(site) == []


def test_r043_a_command_that_nobody_knows_yet_is_pending() -> None:
    with simulated_site() as site:
        ask, left = site.nodes.command_status, [3]

        def unknown_at_first(command_id: str) -> CommandStatus:
            if left[0]:
                left[0] -= 1
                return NOTHING_YET
            return ask(command_id)

        site.nodes.command_status = unknown_at_first  # type: ignore[method-assign]
        assert site.run(job()).status == "SUCCEEDED"


def test_r044_an_answer_for_some_machines_is_not_completion_for_all() -> None:
    with simulated_site() as site:
        ask, asked = site.nodes.command_status, list[int]()

        def in_part(command_id: str) -> CommandStatus:
            status = ask(command_id)
            asked.append(len(status.succeeded))
            shown = frozenset(sorted(status.succeeded)[: len(asked) // 2])
            return CommandStatus(shown, frozenset(), {})

        site.nodes.command_status = in_part  # type: ignore[method-assign]
        assert site.run(job(storage_nodes=8)).status == "SUCCEEDED"
        assert len(asked) >= 16


def test_r049_a_document_that_failed_without_running_gets_another_machine() -> None:
    with simulated_site() as site:
        ask, failed = site.nodes.command_status, set[str]()

        def failing_once(command_id: str) -> CommandStatus:
            status = ask(command_id)
            reached = status.pending | status.succeeded
            if not failed:
                failed.add(sorted(reached)[0])
            if failed & reached:
                why = dict.fromkeys(failed, "document worker timed out")
                return CommandStatus(status.succeeded - failed, status.pending - failed, why)
            return status

        site.nodes.command_status = failing_once  # type: ignore[method-assign]
        assert site.run(job()).status == "SUCCEEDED"
        assert launched(site) == 4


class OneProcessNode:
    """A node that is only a folder and an environment."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, run_id: str, node_id: str) -> Path:  # noqa: ARG002 - a port
        return self.root

    def environment(self, run_id: str, node_id: str) -> dict[str, str]:  # noqa: ARG002 - a port
        return {"PATH": "/usr/bin:/bin"}

    def has_agent(self, run_id: str, node_id: str) -> bool:  # noqa: ARG002 - a port
        return True


@pytest.mark.parametrize("exit_code", [0, 3])
def test_r050_an_output_of_a_mebibyte_is_cut_and_its_exit_code_is_what_counts(
    tmp_path: Path, machine: Node, exit_code: int
) -> None:
    script = f"head -c 1048576 /dev/zero | tr '\\0' x; echo done; exit {exit_code}"
    document = {
        "schemaVersion": "2.2",
        "mainSteps": [{"action": "aws:runShellScript", "name": "print", "inputs": {"runCommand": [script]}}],
    }
    (tmp_path / "print.yaml").write_text(json.dumps(document))
    nodes = LocalDocuments(OneProcessNode(tmp_path), lambda _: [machine], SystemEntropy(), tmp_path)
    command = nodes.send("print", machine.run_id, machine.role, {})
    wait_until(lambda: not nodes.command_status(command).pending)
    status = nodes.command_status(command)
    assert (len(status.succeeded), len(status.failed)) == ((1, 0) if exit_code == 0 else (0, 1))
    assert all(len(text) < TAIL_BYTES + 100 for text in status.failed.values())
