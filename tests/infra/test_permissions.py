"""Who may do what, row by row, decided from the synthesised template as IAM would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from headrace.client.pack import CodeArchive
from tests.infra.assembly import Assembly
from tests.infra.policies import Circumstances, Role, as_list, role_of_function, role_of_machine, role_of_nodes, roles
from tests.infra.references import ACCOUNT, ROLE_ID

REGION, STACK = "eu-west-1", "lab"
OURS = {"aws:ResourceTag/headrace:stack": STACK, "ssm:resourceTag/headrace:stack": STACK}
OTHERS = {"aws:ResourceTag/headrace:stack": "prod", "ssm:resourceTag/headrace:stack": "prod"}
AS_OURS = {"aws:RequestTag/headrace:stack": STACK}
SELF = {"aws:userid": f"{ROLE_ID}:i-0aaa"}
BUCKET = "arn:aws:s3:::run-bucket"


def at(service: str, rest: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"


INSTANCE, FLEET = at("ec2", "instance/i-0aaa"), at("ec2", "fleet/fleet-0")
TEMPLATE = at("ec2", f"launch-template/lt-{STACK}-storage-arm64")
FOREIGN_TEMPLATE = at("ec2", "launch-template/lt-foreign")
TABLE, INDEX = at("dynamodb", f"table/{STACK}-runs"), at("dynamodb", f"table/{STACK}-runs/index/by_age")
BUS = at("events", f"event-bus/{STACK}")
ADMIN_ROLE = f"arn:aws:iam::{ACCOUNT}:role/Admin"
LAUNCH = {**AS_OURS, "ec2:LaunchTemplate": TEMPLATE}
NODE_ROLE = "the role of the machines"
"""Stands for its ARN, which has a generated name."""


def machine(stem: str) -> str:
    return at("states", f"stateMachine:{STACK}-{stem}")


def execution(stem: str) -> str:
    return at("states", f"execution:{STACK}-{stem}:run-1")


class Row(NamedTuple):
    """One question and its answer; `who` is a function, `machine:<stem>`, `node`, or the start of a role's id."""

    who: str
    action: str
    resource: str
    given: Circumstances
    allowed: bool


def allow(who: str, action: str, resource: str = "*", given: Circumstances | None = None) -> Row:
    return Row(who, action, resource, given or {}, allowed=True)


def deny(who: str, action: str, resource: str = "*", given: Circumstances | None = None) -> Row:
    return Row(who, action, resource, given or {}, allowed=False)


def own(folder: str, name: str = "identity.json") -> str:
    return f"{BUCKET}/runs/run-1/nodes/{folder}/{name}"


ENDING = [
    allow("OnSweep", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("OnSweep", "ec2:TerminateInstances", INSTANCE, OTHERS),
    deny("OnSweep", "ec2:TerminateInstances", INSTANCE),
    deny("OnSweep", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("OnSweep", "ec2:StopInstances", INSTANCE, OURS),
    allow("OnSweep", "states:StopExecution", execution("training_run")),
    deny("OnSweep", "states:StopExecution", execution("decommission")),
    deny("OnSweep", "states:StopExecution", at("states", "execution:prod-training_run:run-1")),
    allow("OnSweep", "states:StartExecution", machine("decommission")),
    deny("OnSweep", "states:StartExecution", machine("training_run")),
    allow("OnSweep", "dynamodb:DeleteItem", TABLE),
    deny("OnSweep", "dynamodb:DeleteTable", TABLE),
    allow("OnSweep", "s3:DeleteObject", own("AROA:i-1")),
    deny("OnSweep", "s3:DeleteObject", f"{BUCKET}/runs/run-1/job.json"),
    allow("OnSweep", "s3:DeleteObject", "arn:aws:s3:::results-a/small/run-1/.headrace-probe"),
    deny("OnSweep", "s3:DeleteObject", "arn:aws:s3:::results-a/small/run-1/model.pt"),
    allow("TerminateNodes", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("TerminateNodes", "ec2:TerminateInstances", INSTANCE, OTHERS),
    allow("ReleaseCompute", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("MarkTombstone", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("ReportRun", "ec2:TerminateInstances", INSTANCE, OURS),
    allow("OnExecutionStatus", "states:StartExecution", machine("decommission")),
    deny("OnExecutionStatus", "states:StopExecution", execution("training_run")),
    deny("OnStackDelete", "dynamodb:PutItem", TABLE),
    deny("OnStackDelete", "ec2:TerminateInstances", INSTANCE, OURS),
    allow("OnStackDelete", "ec2:DescribeInstances"),
]
LAUNCHING = [
    allow("LaunchFleet", "ec2:CreateFleet", FLEET, AS_OURS),
    deny("LaunchFleet", "ec2:CreateFleet", FLEET),
    deny("LaunchFleet", "ec2:CreateFleet", FLEET, {"aws:RequestTag/headrace:stack": "prod"}),
    allow("LaunchFleet", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("LaunchFleet", "ec2:RunInstances", INSTANCE, {**LAUNCH, "ec2:LaunchTemplate": FOREIGN_TEMPLATE}),
    deny("LaunchFleet", "ec2:RunInstances", INSTANCE, AS_OURS),
    deny("LaunchFleet", "ec2:RunInstances", INSTANCE, {"ec2:LaunchTemplate": TEMPLATE}),
    allow("LaunchFleet", "ec2:RunInstances", TEMPLATE),
    deny("LaunchFleet", "ec2:RunInstances", FOREIGN_TEMPLATE),
    allow("LaunchFleet", "ec2:RunInstances", at("ec2", "subnet/subnet-0123456789abcdef1"), LAUNCH),
    deny("LaunchFleet", "ec2:RunInstances", at("ec2", "subnet/subnet-elsewhere"), LAUNCH),
    deny("LaunchFleet", "ec2:RunInstances", at("ec2", "security-group/sg-elsewhere"), LAUNCH),
    allow("LaunchFleet", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-0123456789abcdef0", LAUNCH),
    deny("LaunchFleet", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-foreign", LAUNCH),
    allow("LaunchFleet", "ec2:CreateTags", INSTANCE, {**AS_OURS, "ec2:CreateAction": "RunInstances"}),
    deny("LaunchFleet", "ec2:CreateTags", INSTANCE, AS_OURS),
    deny("LaunchFleet", "ec2:CreateTags", INSTANCE, {**AS_OURS, "ec2:CreateAction": "CreateVolume"}),
    allow("LaunchFleet", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    deny("LaunchFleet", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    deny(
        "LaunchFleet",
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/Admin",
        {"iam:PassedToService": "ec2.amazonaws.com"},
    ),
    allow("LaunchFleet", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("PlanLayout", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("ReplaceNodes", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("LaunchFleet", "ec2:ModifyInstanceAttribute", INSTANCE, OURS),
    deny("LaunchFleet", "ec2:CreateLaunchTemplateVersion", TEMPLATE, OURS),
]
COMMANDS = [
    allow("ConfigureNodes", "ssm:SendCommand", at("ssm", f"document/{STACK}-configure-storage")),
    allow("ConfigureNodes", "ssm:SendCommand", INSTANCE, OURS),
    deny("ConfigureNodes", "ssm:SendCommand", INSTANCE, OTHERS),
    deny("ConfigureNodes", "ssm:SendCommand", f"arn:aws:ssm:{REGION}::document/AWS-RunShellScript"),
    deny("ConfigureNodes", "ssm:SendCommand", at("ssm", "document/prod-configure-storage")),
    deny("CheckNodes", "ssm:SendCommand", INSTANCE, OURS),
    allow("CheckNodes", "ssm:DescribeInstanceInformation"),
    allow("CheckConfiguration", "ssm:ListCommandInvocations"),
    deny("CheckConfiguration", "ssm:CancelCommand"),
    deny("ConfigureNodes", "ssm:StartSession", INSTANCE, OURS),
]
NODES = [
    allow("node", "s3:GetObject", own(f"{ROLE_ID}:i-0aaa"), SELF),
    allow("node", "s3:GetObject", own(f"{ROLE_ID}:i-0aaa", "config.json"), SELF),
    deny("node", "s3:GetObject", own(f"{ROLE_ID}:i-0bbb"), SELF),
    deny("node", "s3:GetObject", own(f"{ROLE_ID}:i-0aaa")),
    deny("node", "s3:PutObject", own(f"{ROLE_ID}:i-0aaa"), SELF),
    deny("node", "s3:GetObject", f"{BUCKET}/runs/run-1/plan.json", SELF),
    deny("node", "s3:GetObject", f"{BUCKET}/jobs/secret.yaml", SELF),
    allow("node", "s3:GetObject", f"{BUCKET}/runs/run-1/staging/storage-0/part-00000.json", SELF),
    allow("node", "s3:GetObject", f"{BUCKET}/{CodeArchive(b'code').key}", SELF),
    deny("node", "s3:PutObject", f"{BUCKET}/{CodeArchive(b'code').key}", SELF),
    allow("node", "s3:PutObject", f"{BUCKET}/runs/run-1/logs/i-0aaa.log", SELF),
    deny("node", "s3:PutObject", f"{BUCKET}/jobs/another.yaml", SELF),
    deny("node", "s3:PutObject", f"{BUCKET}/runs/run-1/receipt-1.json", SELF),
    deny("node", "s3:DeleteObject", f"{BUCKET}/runs/run-1/logs/i-0aaa.log", SELF),
    allow("node", "s3:GetObject", "arn:aws:s3:::data-b/set/1.bin", SELF),
    deny("node", "s3:PutObject", "arn:aws:s3:::data-b/set/1.bin", SELF),
    allow("node", "s3:PutObject", "arn:aws:s3:::results-a/run-1/model.pt", SELF),
    deny("node", "s3:DeleteObject", "arn:aws:s3:::results-a/run-1/model.pt", SELF),
    deny("node", "s3:GetObject", "arn:aws:s3:::elsewhere/key", SELF),
    allow("node", "events:PutEvents", BUS, {"events:source": "headrace.agent"}),
    deny("node", "events:PutEvents", BUS, {"events:source": "headrace.run"}),
    deny("node", "events:PutEvents", BUS),
    deny("node", "events:PutEvents", at("events", "event-bus/default"), {"events:source": "headrace.agent"}),
    deny("node", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("node", "dynamodb:GetItem", TABLE),
    deny("node", "states:SendTaskSuccess", machine("training_run")),
    deny("node", "ssm:SendCommand", INSTANCE, OURS),
    deny("node", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
]
CONTROL = [
    allow("OnAgentEvent", "states:SendTaskSuccess", machine("training_run")),
    deny("OnAgentEvent", "states:SendTaskSuccess", machine("fleet")),
    deny("OnAgentEvent", "states:SendTaskSuccess", at("states", "stateMachine:payroll")),
    deny("OnAgentEvent", "states:StartExecution", machine("training_run")),
    allow("OnAgentEvent", "s3:PutObject", own(f"{ROLE_ID}:i-0aaa", "lease.json")),
    deny("OnAgentEvent", "s3:PutObject", f"{BUCKET}/runs/run-1/plan.json"),
    allow("OnAgentEvent", "events:PutEvents", BUS, {"events:source": "headrace.run"}),
    deny("OnAgentEvent", "events:PutEvents", BUS, {"events:source": "headrace.agent"}),
    deny("TrainJob", "states:SendTaskSuccess", machine("training_run")),
    allow("AdmitRun", "s3:GetObject", f"{BUCKET}/jobs/digits.yaml"),
    deny("PlanLayout", "s3:GetObject", f"{BUCKET}/jobs/digits.yaml"),
    deny("InspectDataset", "s3:GetObject", "arn:aws:s3:::data-a/set/1.bin"),
    allow("InspectDataset", "s3:ListBucket", "arn:aws:s3:::data-a"),
    deny("InspectDataset", "s3:ListBucket", "arn:aws:s3:::elsewhere"),
    allow("PlanLayout", "s3:PutObject", "arn:aws:s3:::results-a/small/run-1/.headrace-probe"),
    deny("PlanLayout", "s3:PutObject", "arn:aws:s3:::results-a/small/run-1/model.pt"),
    allow("CollectResults", "s3:GetObject", "arn:aws:s3:::results-a/small/run-1/model.pt"),
    deny("CollectResults", "s3:PutObject", f"{BUCKET}/runs/run-1/plan.json"),
    deny("ReportRun", "dynamodb:DeleteItem", TABLE),
    allow("OnStackDelete", "dynamodb:Query", INDEX),
    deny("AdmitRun", "dynamodb:Scan", TABLE),
    deny("AdmitRun", "dynamodb:GetItem", at("dynamodb", "table/prod-runs")),
    deny("AdmitRun", "logs:PutLogEvents", at("logs", "log-group:/aws/lambda/lab-OnSweep:log-stream:x")),
    allow("machine:training_run", "lambda:InvokeFunction", at("lambda", f"function:{STACK}-PlanLayout:7")),
    deny("machine:training_run", "lambda:InvokeFunction", at("lambda", f"function:{STACK}-PlanLayout")),
    deny("machine:training_run", "lambda:InvokeFunction", at("lambda", f"function:{STACK}-OnSweep:7")),
    allow("machine:training_run", "states:StartExecution", f"{machine('fleet')}:3"),
    deny("machine:training_run", "states:StartExecution", machine("training_run")),
    deny("machine:fleet", "states:StartExecution", machine("decommission")),
    deny("machine:decommission", "lambda:InvokeFunction", at("lambda", f"function:{STACK}-LaunchFleet:7")),
    allow("RulesUploadRole", "states:StartExecution", f"{machine('training_run')}:live"),
    deny("RulesUploadRole", "states:StartExecution", machine("decommission")),
    allow("ScheduleRole", "states:StartExecution", f"{machine('training_run')}:live"),
    deny("ScheduleRole", "lambda:InvokeFunction", at("lambda", f"function:{STACK}-OnSweep:live")),
]
ROWS = [*ENDING, *LAUNCHING, *COMMANDS, *NODES, *CONTROL]
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
