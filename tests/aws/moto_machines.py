"""What moto lacks of Systems Manager: machines that register, take documents, and say how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from unittest.mock import patch

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ssm.models import SimpleSystemManagerBackend
from moto.ssm.responses import SimpleSystemManagerResponse

ACCOUNT = "123456789012"
REGION = "us-east-1"
PAGE = 1
"""Every listing comes in pages of one, so that no caller reads only the first."""


class Machines(Protocol):
    """Machines that run documents; `tags` choose some of them."""

    def online(self, tags: Mapping[str, str]) -> list[str]:
        """Return ids of the machines whose agent answers."""
        ...

    def run(self, document: str, tags: Mapping[str, str], parameters: Mapping[str, str]) -> str:
        """Start the document; return the command's id."""
        ...

    def invocations(self, command_id: str) -> list[dict[str, Any]]:
        """Return what ListCommandInvocations tells."""
        ...


def instances_with(tags: Mapping[str, str]) -> list[Any]:
    """Return moto's running instances with these tags."""
    filters = {f"tag:{name}": [value] for name, value in tags.items()}
    reservations = ec2_backends[ACCOUNT][REGION].all_reservations(filters=filters)
    return [one for reservation in reservations for one in reservation.instances if one.state == "running"]


class ScriptedMachines:
    """Every running instance is online; a document is listed at the second look, and has ended at the third."""

    def __init__(self) -> None:
        self._commands: dict[str, tuple[str, list[str]]] = {}
        self._looks: dict[str, int] = {}

    def online(self, tags: Mapping[str, str]) -> list[str]:
        return [one.id for one in instances_with(tags)]

    def run(self, document: str, tags: Mapping[str, str], parameters: Mapping[str, str]) -> str:
        assert parameters["RunId"]
        command_id = f"00000000-0000-4000-8000-{len(self._commands):012}"
        self._commands[command_id] = (document, self.online(tags))
        return command_id

    def invocations(self, command_id: str) -> list[dict[str, Any]]:
        document, node_ids = self._commands[command_id]
        self._looks[command_id] = look = self._looks.get(command_id, -1) + 1
        if look == 0:
            return []
        ended = ("Failed", "broken") if document.endswith("fails") else ("Success", "")
        status, output = ("InProgress", "") if look <= len(node_ids) else ended
        return [invocation(node_id, status, output) for node_id in node_ids]


def invocation(node_id: str, status: str, output: str) -> dict[str, Any]:
    """Return one row of ListCommandInvocations."""
    return {
        "InstanceId": node_id,
        "Status": status,
        "StatusDetails": status,
        "CommandPlugins": [{"Name": "step", "Status": status, "Output": output}],
    }


@contextmanager
def systems_manager(machines: Machines) -> Iterator[None]:
    """Have moto's Systems Manager act through these machines."""

    def describe_instance_information(self: SimpleSystemManagerResponse) -> ActionResult:
        tags = {one["Key"].removeprefix("tag:"): one["Values"][0] for one in self._get_param("Filters", [])}
        rows = [{"InstanceId": node_id, "PingStatus": "Online"} for node_id in machines.online(tags)]
        return _page(self, "InstanceInformationList", rows)

    def list_command_invocations(self: SimpleSystemManagerResponse) -> ActionResult:
        rows = machines.invocations(self._get_param("CommandId"))
        return _page(self, "CommandInvocations", rows)

    original = SimpleSystemManagerBackend.send_command

    def send_command(self: SimpleSystemManagerBackend, **asked: Any) -> Any:
        tags = {one["Key"].removeprefix("tag:"): one["Values"][0] for one in asked["targets"]}
        parameters = {name: values[0] for name, values in asked["parameters"].items()}
        command = original(self, **{**asked, "targets": []})
        command.command_id = machines.run(asked["document_name"], tags, parameters)
        return command

    with ExitStack() as stack:
        response = SimpleSystemManagerResponse
        for name, method in (
            ("describe_instance_information", describe_instance_information),
            ("list_command_invocations", list_command_invocations),
        ):
            stack.enter_context(patch.object(response, name, method, create=True))
        stack.enter_context(patch.object(SimpleSystemManagerBackend, "send_command", send_command))
        yield


def _page(response: SimpleSystemManagerResponse, name: str, rows: list[dict[str, Any]]) -> ActionResult:
    start = int(response._get_param("NextToken") or 0)
    token = {"NextToken": str(start + PAGE)} if start + PAGE < len(rows) else {}
    return ActionResult({name: rows[start : start + PAGE], **token})
