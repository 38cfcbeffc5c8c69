"""Documents through Systems Manager: by tag, with true completion counts, and failures in words."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from headrace.aws.nodes import EXPLAINED, PAGES_MAX, AwsNodes
from headrace.domain.errors import AccessDenied
from headrace.ports import CommandStatus
from tests.aws.moto_machines import invocation
from tests.aws.recorded import recorded

COMMAND = "0123abcd-0000-4000-8000-000000000000"
TARGETS = [{"Key": "tag:headrace:run-id", "Values": ["job-1"]}, {"Key": "tag:headrace:role", "Values": ["compute"]}]


def page(rows: list[dict[str, Any]], asked: str | None = None, token: str | None = None) -> tuple[Any, ...]:
    answer = {"CommandInvocations": rows} | ({"NextToken": token} if token else {})
    expected = {"CommandId": COMMAND, "Details": True, "MaxResults": 50} | ({"NextToken": asked} if asked else {})
    return "list_command_invocations", answer, expected


def test_a_document_goes_to_tags_whatever_the_size_of_the_fleet() -> None:
    with recorded("ssm") as (client, stubber):
        expected = {
            "DocumentName": "headrace-train-job",
            "Targets": TARGETS,
            "Parameters": {"RunId": ["job-1"]},
            "MaxConcurrency": "100%",
            "MaxErrors": "100%",
            "TimeoutSeconds": 600,
        }
        stubber.add_response("send_command", {"Command": {"CommandId": COMMAND}}, expected)
        assert AwsNodes(client, "headrace").send("train-job", "job-1", "compute", {"RunId": "job-1"}) == COMMAND


def test_a_refused_document_says_what_to_allow() -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_client_error("send_command", "AccessDeniedException", "not authorized")
        with pytest.raises(AccessDenied, match="Allow ssm:SendCommand"):
            AwsNodes(client, "headrace").send("train-job", "job-1", "compute", {})


def test_only_machines_whose_agent_answers_are_online() -> None:
    with recorded("ssm") as (client, stubber):
        rows = [("i-1", "Online"), ("i-2", "ConnectionLost"), ("i-3", "Online")]
        listed = [{"InstanceId": node_id, "PingStatus": status} for node_id, status in rows]
        expected = {"Filters": TARGETS, "MaxResults": 50}
        first = {"InstanceInformationList": listed[:2], "NextToken": "more"}
        stubber.add_response("describe_instance_information", first, expected)
        second = {"InstanceInformationList": listed[2:]}
        stubber.add_response("describe_instance_information", second, {**expected, "NextToken": "more"})
        assert AwsNodes(client, "headrace").online("job-1", "compute") == {"i-1", "i-3"}


def test_pages_are_read_to_the_end_and_repeated_rows_count_once() -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_response(*page([invocation("i-1", "InProgress", "")], token="a"))
        stubber.add_response(*page([invocation("i-1", "Success", ""), invocation("i-2", "Delayed", "")], "a", "b"))
        stubber.add_response(*page([], "b"))
        status = AwsNodes(client, "headrace").command_status(COMMAND)
    assert status == CommandStatus(frozenset({"i-1"}), frozenset({"i-2"}), {})


def test_a_listing_that_always_names_the_same_next_page_ends() -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_response(*page([invocation("i-1", "Success", "")], token="a"))
        stubber.add_response(*page([invocation("i-2", "Success", "")], "a", "a"))
        assert AwsNodes(client, "headrace").command_status(COMMAND).succeeded == {"i-1", "i-2"}


def test_a_listing_that_always_names_a_new_page_ends() -> None:
    with recorded("ssm") as (client, stubber):
        for number in range(PAGES_MAX):
            stubber.add_response(*page([], str(number) if number else None, str(number + 1)))
        assert AwsNodes(client, "headrace").command_status(COMMAND) == CommandStatus(frozenset(), frozenset(), {})


@pytest.mark.parametrize("code", ["InvocationDoesNotExist", "InvalidCommandId"])
def test_a_command_that_is_not_known_yet_has_ended_nowhere(code: str) -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_client_error("list_command_invocations", code)
        status = AwsNodes(client, "headrace").command_status(COMMAND)
    assert not status.succeeded | status.pending | set(status.failed)


def test_any_other_error_is_raised() -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_client_error("list_command_invocations", "InternalServerError")
        with pytest.raises(ClientError, match="InternalServerError"):
            AwsNodes(client, "headrace").command_status(COMMAND)


@pytest.mark.parametrize(
    ("status", "details", "reason"),
    [
        ("TimedOut", "Delivery Timed Out", EXPLAINED["DeliveryTimedOut"]),
        ("TimedOut", "DeliveryTimedOut", EXPLAINED["DeliveryTimedOut"]),
        ("TimedOut", "ExecutionTimedOut", EXPLAINED["ExecutionTimedOut"]),
        ("Failed", "Undeliverable", EXPLAINED["Undeliverable"]),
        ("Cancelled", "Cancelled", EXPLAINED["Cancelled"]),
        ("Failed", "Something New", "no output"),
    ],
)
def test_a_document_that_never_ran_has_failed_with_its_reason(status: str, details: str, reason: str) -> None:
    with recorded("ssm") as (client, stubber):
        row = {"InstanceId": "i-1", "Status": status, "StatusDetails": details, "CommandPlugins": []}
        stubber.add_response(*page([row]))
        found = AwsNodes(client, "headrace").command_status(COMMAND)
    assert found.failed == {"i-1": f"{details}: {reason}"}


def test_a_failed_document_shows_its_output() -> None:
    with recorded("ssm") as (client, stubber):
        stubber.add_response(*page([invocation("i-1", "Failed", "mkfs.xfs: no such device\n")]))
        assert AwsNodes(client, "headrace").command_status(COMMAND).failed == {
            "i-1": "Failed: mkfs.xfs: no such device"
        }
