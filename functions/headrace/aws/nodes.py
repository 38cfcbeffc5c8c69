"""The Nodes port on Systems Manager: documents go to tags, and only what each machine says counts as an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from headrace.aws.error_codes import code_of, meaning_of, message_of
from headrace.aws.paging import bounded
from headrace.aws.tags import ROLE, RUN
from headrace.domain.errors import AccessDenied
from headrace.domain.plan import Role
from headrace.ports import CommandStatus

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_ssm.type_defs import CommandInvocationTypeDef, InstanceInformationTypeDef

PAGE = 50
PAGES_MAX = 400
"""Enough for 20,000 machines."""
DELIVERY_SECONDS = 600
"""How long a machine may take to begin a document; how long it may then take is said in the document."""
PENDING = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})
NOT_YET = frozenset({"InvocationDoesNotExist", "InvalidCommandId"})


class AwsNodes:
    """The Nodes port; documents are named `<stack>-<document>`."""

    def __init__(self, client: SSMClient, stack: str) -> None:
        self._client = client
        self._stack = stack

    def online(self, run_id: str, role: Role) -> frozenset[str]:
        """Return ids of the machines whose agent of Systems Manager answers its pings."""
        return frozenset(
            one["InstanceId"] for one in self._registered(run_id, role) if one.get("PingStatus") == "Online"
        )

    def send(self, document: str, run_id: str, role: Role, parameters: Mapping[str, str]) -> str:
        """Start the document on every machine of that run and role, all at once. Return the command's id.

        Raises AccessDenied.
        """
        try:
            answer = self._client.send_command(
                DocumentName=f"{self._stack}-{document}",
                Targets=[{"Key": f"tag:{RUN}", "Values": [run_id]}, {"Key": f"tag:{ROLE}", "Values": [role]}],
                Parameters={name: [value] for name, value in parameters.items()},
                MaxConcurrency="100%",
                # One machine that fails keeps no other from the document; the caller replaces it.
                MaxErrors="100%",
                TimeoutSeconds=DELIVERY_SECONDS,
            )
        except ClientError as error:
            if meaning_of(code_of(error)) == "denied":
                raise AccessDenied(
                    f"Systems Manager refused to send {self._stack}-{document} to the {role} machines of {run_id}: "
                    f"{message_of(error)}. Allow ssm:SendCommand for that document and this stack's machines"
                ) from error
            raise
        return answer["Command"]["CommandId"]

    def command_status(self, command_id: str) -> CommandStatus:
        """Return how far the command is on each machine that is listed; one not listed yet is pending."""
        latest = {one["InstanceId"]: one for one in self._invocations(command_id)}
        pending = frozenset(node_id for node_id, one in latest.items() if one["Status"] in PENDING)
        succeeded = frozenset(node_id for node_id, one in latest.items() if one["Status"] == "Success")
        failed = {node_id: _failure(one) for node_id, one in latest.items() if node_id not in pending | succeeded}
        return CommandStatus(succeeded, pending, failed)

    def _registered(self, run_id: str, role: Role) -> Iterator[InstanceInformationTypeDef]:
        pages = self._client.get_paginator("describe_instance_information").paginate(
            Filters=[{"Key": f"tag:{RUN}", "Values": [run_id]}, {"Key": f"tag:{ROLE}", "Values": [role]}],
            PaginationConfig={"PageSize": PAGE},
        )
        for page in bounded(pages, PAGES_MAX):
            yield from page["InstanceInformationList"]

    def _invocations(self, command_id: str) -> Iterator[CommandInvocationTypeDef]:
        """Yield what is listed, which may be nothing just after the command was sent."""
        pages = self._client.get_paginator("list_command_invocations").paginate(
            CommandId=command_id, Details=True, PaginationConfig={"PageSize": PAGE}
        )
        try:
            for page in bounded(pages, PAGES_MAX):
                yield from page["CommandInvocations"]
        except ClientError as error:
            if code_of(error) not in NOT_YET:
                raise


def _failure(invocation: CommandInvocationTypeDef) -> str:
    """Return why the document failed on a machine: the last lines of its output, or what became of its delivery."""
    outputs = [plugin.get("Output", "").strip() for plugin in invocation.get("CommandPlugins", ())]
    why = invocation.get("StatusDetails") or invocation["Status"]
    said = "\n".join(output for output in outputs if output)
    return f"{why}: {said}" if said else f"{why}: {EXPLAINED.get(why.replace(' ', ''), 'no output')}"


EXPLAINED = {
    "DeliveryTimedOut": f"the machine did not take the document within {DELIVERY_SECONDS} s",
    "Undeliverable": "the machine is not there, or its agent of Systems Manager does not answer",
    "ExecutionTimedOut": "the document ran longer than it may",
    "AccessDenied": "the machine's role or the caller's policy forbids the document",
    "Cancelled": "somebody cancelled the command",
    "Terminated": "the command had more errors than it allows",
    "InvalidPlatform": "the document is not for this kind of machine",
}
