"""What a function reads from its environment, and what it says when the stack did not set it."""

from __future__ import annotations

import pytest

from headrace.aws.settings import BadEnvironment, read_stack, run_settings

ENVIRON = {
    "HEADRACE_STACK": "headrace",
    "HEADRACE_RUN_BUCKET": "bucket",
    "HEADRACE_NODE_ROLE_ID": "AROA1",
    "HEADRACE_SUBNETS": "subnet-1:us-east-1b, subnet-2:us-east-1a,subnet-3:us-east-1b",
    "HEADRACE_MACHINES": "arn:aws:states:us-east-1:123456789012:stateMachine:headrace-",
}


def test_the_environment_is_read_whole() -> None:
    stack = read_stack(ENVIRON)
    assert stack.subnets == {"us-east-1b": "subnet-1", "us-east-1a": "subnet-2"}
    assert list(stack.subnets) == ["us-east-1b", "us-east-1a"]
    settings = run_settings(stack)
    assert (settings.run_bucket, settings.node_folder_prefix, settings.process_nodes) == ("bucket", "AROA1:", False)
    assert settings.region == "us-east-1"


def test_every_absent_variable_is_named() -> None:
    with pytest.raises(BadEnvironment, match="no HEADRACE_STACK, HEADRACE_SUBNETS; the stack sets them"):
        read_stack({**ENVIRON, "HEADRACE_STACK": "", "HEADRACE_SUBNETS": ""})


@pytest.mark.parametrize("subnets", ["subnet-1", "subnet-1:", ":us-east-1a", "subnet-1:us-east-1a,"])
def test_subnets_need_their_zones(subnets: str) -> None:
    with pytest.raises(BadEnvironment, match="is not like subnet-1:us-east-1a"):
        read_stack({**ENVIRON, "HEADRACE_SUBNETS": subnets})


def test_placement_groups_and_types_with_efa_are_read_where_the_stack_has_them() -> None:
    more = {"HEADRACE_PLACEMENT_GROUPS": "group-1:us-east-1b,group-2:us-east-1a", "HEADRACE_EFA_TYPES": "p5.48xlarge"}
    stack = read_stack({**ENVIRON, **more})
    assert (dict(stack.groups), stack.efa_types) == (
        {"us-east-1b": "group-1", "us-east-1a": "group-2"},
        frozenset({"p5.48xlarge"}),
    )
    assert (dict(read_stack(ENVIRON).groups), read_stack(ENVIRON).efa_types) == ({}, frozenset())


def test_a_heartbeat_may_be_missed_a_few_times_and_polling_fits_a_history() -> None:
    settings = run_settings(read_stack(ENVIRON))
    assert settings.heartbeat_timeout_seconds >= 4 * settings.heartbeat_seconds
    # One round of the decommission machine is at most 16 events; its own time-out is 7,000 s.
    assert 7_000 / settings.poll_seconds * 16 < 25_000
