"""Terminations on EC2: in small groups, around ids that it does not know, and never silently refused."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from headrace.aws.termination import terminate
from headrace.domain.errors import AccessDenied
from tests.aws.recorded import recorded

IDS = [f"i-{number}" for number in range(120)]


def accept(stubber: Any, node_ids: list[str]) -> None:
    answer = {"TerminatingInstances": [{"InstanceId": one} for one in node_ids]}
    stubber.add_response("terminate_instances", answer, {"InstanceIds": node_ids})


def refuse(stubber: Any, code: str, node_ids: list[str]) -> None:
    stubber.add_client_error("terminate_instances", code, expected_params={"InstanceIds": node_ids})


def test_no_call_names_more_than_50() -> None:
    with recorded("ec2") as (client, stubber):
        for start in (0, 50, 100):
            accept(stubber, IDS[start : start + 50])
        assert terminate(client, IDS) == tuple(IDS)


def test_an_unknown_id_keeps_no_other_from_its_end() -> None:
    with recorded("ec2") as (client, stubber):
        refuse(stubber, "InvalidInstanceID.NotFound", ["i-0", "i-1", "bad", "i-3"])
        accept(stubber, ["i-0", "i-1"])
        refuse(stubber, "InvalidInstanceID.Malformed", ["bad", "i-3"])
        refuse(stubber, "InvalidInstanceID.Malformed", ["bad"])
        accept(stubber, ["i-3"])
        assert terminate(client, ["i-0", "i-1", "bad", "i-3"]) == ("i-0", "i-1", "i-3")


def test_a_refusal_is_raised_after_the_other_groups_were_asked() -> None:
    with recorded("ec2") as (client, stubber):
        refuse(stubber, "UnauthorizedOperation", IDS[:50])
        accept(stubber, IDS[50:100])
        accept(stubber, IDS[100:])
        with pytest.raises(AccessDenied, match="ec2:TerminateInstances"):
            terminate(client, IDS)


def test_a_protected_machine_is_an_error_of_its_group() -> None:
    with recorded("ec2") as (client, stubber):
        refuse(stubber, "OperationNotPermitted", ["i-0"])
        with pytest.raises(ClientError, match="OperationNotPermitted"):
            terminate(client, ["i-0"])


def test_nothing_to_end_asks_nothing() -> None:
    with recorded("ec2") as (client, _):
        assert terminate(client, []) == ()
