"""Step Functions: names that are taken, tokens that were answered before, and texts within its limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from headrace.aws.executions import CAUSE_CHARACTERS, AwsExecutions, ExecutionNameTaken
from tests.aws.moto_stack import MACHINES
from tests.aws.recorded import NOW, recorded

MACHINE = f"{MACHINES}decommission"
ARN = f"{MACHINE.replace(':stateMachine:', ':execution:')}:job-1-sweep-7"
GIVEN = {"run_id": "job-1", "report": True}


def described(status: str, given: Any) -> dict[str, Any]:
    return {
        "executionArn": ARN,
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": NOW,
        "input": json.dumps(given),
    }


def start(client: Any) -> str:
    return AwsExecutions(client, MACHINES).start("decommission", "job-1-sweep-7", GIVEN)


def test_an_execution_is_started_in_the_stacks_machine() -> None:
    with recorded("stepfunctions") as (client, stubber):
        expected = {"stateMachineArn": MACHINE, "name": "job-1-sweep-7", "input": '{"report": true, "run_id": "job-1"}'}
        stubber.add_response("start_execution", {"executionArn": ARN, "startDate": NOW}, expected)
        assert start(client) == ARN


def test_a_closed_execution_of_that_name_and_input_is_the_same() -> None:
    with recorded("stepfunctions") as (client, stubber):
        stubber.add_client_error("start_execution", "ExecutionAlreadyExists")
        stubber.add_response("describe_execution", described("SUCCEEDED", GIVEN), {"executionArn": ARN})
        assert start(client) == ARN


def test_a_name_taken_for_another_input_is_an_error() -> None:
    with recorded("stepfunctions") as (client, stubber):
        stubber.add_client_error("start_execution", "ExecutionAlreadyExists")
        stubber.add_response("describe_execution", described("RUNNING", {"run_id": "job-2"}))
        with pytest.raises(ExecutionNameTaken, match="exists already with another input"):
            start(client)


def test_any_other_refusal_to_start_is_raised() -> None:
    with recorded("stepfunctions") as (client, stubber):
        stubber.add_client_error("start_execution", "ExecutionLimitExceeded")
        with pytest.raises(ClientError, match="ExecutionLimitExceeded"):
            start(client)


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
@pytest.mark.parametrize("method", ["success", "failure", "heartbeat"])
def test_a_token_that_no_longer_waits_was_answered_already(code: str, method: str) -> None:
    with recorded("stepfunctions") as (client, stubber):
        stubber.add_client_error(f"send_task_{method}", code)
        port = AwsExecutions(client, MACHINES)
        answers = {
            "success": lambda: port.succeed("t", {}),
            "failure": lambda: port.fail("t", "JobFailed", "why"),
            "heartbeat": lambda: port.heartbeat("t"),
        }
        assert not answers[method]()


def test_a_long_cause_is_cut_to_what_is_taken() -> None:
    with recorded("stepfunctions") as (client, stubber):
        expected = {"taskToken": "t", "error": "JobFailed", "cause": "x" * CAUSE_CHARACTERS}
        stubber.add_response("send_task_failure", {}, expected)
        assert AwsExecutions(client, MACHINES).fail("t", "JobFailed", "x" * 50_000)


def test_a_throttled_answer_is_raised_so_that_the_event_comes_again() -> None:
    with recorded("stepfunctions") as (client, stubber):
        stubber.add_client_error("send_task_success", "ThrottlingException")
        with pytest.raises(ClientError, match="ThrottlingException"):
            AwsExecutions(client, MACHINES).succeed("t", {})


@pytest.mark.parametrize("code", ["ExecutionDoesNotExist", "InvalidArn"])
def test_what_does_not_exist_does_not_run_and_cannot_be_stopped(code: str) -> None:
    with recorded("stepfunctions") as (client, stubber):
        for _ in range(2):
            stubber.add_client_error("describe_execution", code)
        port = AwsExecutions(client, MACHINES)
        assert not port.is_running("local")
        port.stop("local", "why")
