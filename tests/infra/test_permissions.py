"""Who may do what, row by row, decided from the synthesised template as IAM would."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.infra.assembly import Assembly
from tests.infra.permission_rows import NODE_ROLE, ROWS, Row, at
from tests.infra.policies import Role, as_list, role_of_function, role_of_machine, role_of_nodes, roles
from tests.infra.references import ACCOUNT

UNSCOPED_WRITES = {
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    "logs:CreateLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:PutResourcePolicy",
}
"""Actions that write and that AWS lets a policy scope to no resource."""
INLINE_CHARACTERS_MAX = 10_240
READS = ("Describe", "List", "Get")


def role_of(assembly: Assembly, who: str) -> Role:
    if who == "node":
        return role_of_nodes(assembly)
    if who.startswith("machine:"):
        return role_of_machine(assembly, who.partition(":")[2])
    found = [role for id_, role in roles(assembly).items() if id_.startswith(who)]
    return found[0] if found else role_of_function(assembly, who)


def test_there_are_enough_rows() -> None:
    assert len(ROWS) == len({str(row) for row in ROWS})
    assert len(ROWS) >= 100
    assert min(sum(row.allowed for row in ROWS), sum(not row.allowed for row in ROWS)) >= 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.who}-{row.action}-{row.allowed}")
def test_the_template_allows_and_denies(options: Assembly, row: Row) -> None:
    node_role = f"arn:aws:iam::{ACCOUNT}:role/{role_of_nodes(options).logical_id}"
    resource = node_role if row.resource == NODE_ROLE else row.resource
    assert role_of(options, row.who).may(row.action, resource, row.given) == row.allowed


def every_statement(assembly: Assembly) -> Iterator[tuple[str, dict[str, object]]]:
    for id_, role in roles(assembly).items():
        for statement in role.statements:
            yield id_, statement


def test_no_role_may_take_actions_that_are_not_named(options: Assembly, defaults: Assembly) -> None:
    actions = {action for one in (options, defaults) for role in roles(one).values() for action in role.actions()}
    assert len(actions) > 40
    assert [action for action in actions if "*" in action] == []


def test_everything_is_only_read_unless_aws_can_scope_it_to_nothing(options: Assembly) -> None:
    wide = {
        action
        for _, statement in every_statement(options)
        if "*" in as_list(statement["Resource"])
        for action in as_list(statement["Action"])
    }
    writes = {action for action in wide if not action.split(":")[1].startswith(READS)}
    assert writes == UNSCOPED_WRITES


def test_policies_are_within_the_limit_of_iam(options: Assembly, defaults: Assembly) -> None:
    """IAM counts all inline policies of a role together, without white space."""
    sizes = {
        (assembly.stack, id_): len(json.dumps(role.statements, separators=(",", ":")))
        for assembly in (options, defaults)
        for id_, role in roles(assembly).items()
    }
    assert max(sizes.values()) < INLINE_CHARACTERS_MAX * 0.8, max(sizes, key=lambda one: sizes[one])


def test_every_function_has_a_role_of_its_own(options: Assembly) -> None:
    functions = options.by_name("AWS::Lambda::Function", "FunctionName")
    assert len({one["Role"] for one in functions.values()}) == len(functions) > 20


def test_nothing_may_change_roles_or_templates(options: Assembly) -> None:
    forbidden = ("iam:Put", "iam:Attach", "iam:CreateRole", "ec2:CreateLaunchTemplate", "lambda:Update")
    actions = {action for role in roles(options).values() for action in role.actions()}
    assert [action for action in actions if action.startswith(forbidden)] == []


def test_nobody_assumes_roles_or_reads_secrets_that_no_option_names(defaults: Assembly) -> None:
    actions = {action for role in roles(defaults).values() for action in role.actions()}
    assert [action for action in actions if action.startswith(("sts:", "secretsmanager:"))] == []


def test_with_a_boundary_every_role_has_it(options: Assembly) -> None:
    found = {one.get("PermissionsBoundary") for one in options.of_type("AWS::IAM::Role").values()}
    assert found == {"arn:aws:iam::123456789012:policy/boundary"}


def test_with_a_key_every_function_and_node_may_use_it_and_no_other(options: Assembly, defaults: Assembly) -> None:
    for name in options.by_name("AWS::Lambda::Function", "FunctionName"):
        role = role_of_function(options, name)
        keys = [as_list(one["Resource"]) for one in role.statements if "kms:Decrypt" in as_list(one["Action"])]
        assert len(keys) == 1, name
        assert keys[0][0].startswith(at("kms", "key/Key")), keys
    assert not any("kms:Decrypt" in role.actions() for role in roles(defaults).values())
