"""Questions to IAM and their answers: who may do what, where and when, in the stack with every option."""

from __future__ import annotations

from typing import NamedTuple

from headrace.client.pack import CodeArchive
from tests.infra.policies import Circumstances
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
    allow("FenceCompute", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("FenceCompute", "ec2:TerminateInstances", INSTANCE, OTHERS),
    deny("SaveLeftResults", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("MarkTombstone", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("ReportRun", "ec2:TerminateInstances", INSTANCE, OURS),
    allow("OnExecutionStatus", "states:StartExecution", machine("decommission")),
    deny("OnExecutionStatus", "states:StopExecution", execution("training_run")),
    deny("OnStackDelete", "dynamodb:PutItem", TABLE),
    deny("OnStackDelete", "ec2:TerminateInstances", INSTANCE, OURS),
    allow("OnStackDelete", "ec2:DescribeInstances"),
]
LAUNCHING = [
    allow("PlanLayout", "s3:GetObject", f"{BUCKET}/config/policy.yaml"),
    deny("PlanLayout", "s3:PutObject", f"{BUCKET}/config/policy.yaml"),
    deny("AdmitRun", "s3:GetObject", f"{BUCKET}/config/policy.yaml"),
    deny("node", "s3:PutObject", f"{BUCKET}/config/prices.yaml"),
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
    allow("LaunchFleet", "ec2:RunInstances", at("ec2", "placement-group/group-NetworkCluster0A4A926D0"), LAUNCH),
    allow("LaunchFleet", "ec2:CreateFleet", at("ec2", "placement-group/group-NetworkCluster1F926675C")),
    deny("LaunchFleet", "ec2:RunInstances", at("ec2", "placement-group/elsewhere"), LAUNCH),
    allow("LaunchFleet", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-0123456789abcdef0", LAUNCH),
    deny("LaunchFleet", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-foreign", LAUNCH),
    allow("LaunchFleet", "ec2:CreateTags", INSTANCE, {**AS_OURS, "ec2:CreateAction": "RunInstances"}),
    deny("LaunchFleet", "ec2:CreateTags", INSTANCE, AS_OURS),
    deny("LaunchFleet", "ec2:CreateTags", INSTANCE, {**AS_OURS, "ec2:CreateAction": "CreateVolume"}),
    allow("LaunchFleet", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    deny("LaunchFleet", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    deny("LaunchFleet", "iam:PassRole", ADMIN_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    allow("LaunchFleet", "ec2:TerminateInstances", INSTANCE, OURS),
    deny("PlanLayout", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("ReplaceNodes", "ec2:RunInstances", INSTANCE, LAUNCH),
    deny("LaunchFleet", "ec2:ModifyInstanceAttribute", INSTANCE, OURS),
    deny("LaunchFleet", "ec2:CreateLaunchTemplateVersion", TEMPLATE, OURS),
]
COMMANDS = [
    allow("OnInstanceEvent", "ec2:DescribeInstances"),
    deny("OnInstanceEvent", "ec2:TerminateInstances", INSTANCE, OURS),
    allow("OnInstanceEvent", "ssm:SendCommand", INSTANCE, OURS),
    deny("OnInstanceEvent", "ssm:SendCommand", INSTANCE, OTHERS),
    allow("OnInstanceEvent", "states:SendTaskFailure", machine("training_run")),
    deny("OnInstanceEvent", "states:SendTaskSuccess", machine("training_run")),
    allow("OnInstanceEvent", "s3:PutObject", own(f"{ROLE_ID}:i-0aaa", "notice.json")),
    deny("OnInstanceEvent", "s3:GetObject", own(f"{ROLE_ID}:i-0aaa")),
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
    allow("node", "s3:PutObject", f"{BUCKET}/runs/run-1/staging/storage-0/index.jsonl", SELF),
    deny("node", "s3:PutObject", f"{BUCKET}/runs/run-1/staging/storage-0/part-00000.json", SELF),
    allow("node", "s3:PutObject", f"{BUCKET}/runs/run-1/checkpoints/rank-0.json", SELF),
    allow("node", "s3:GetObject", f"{BUCKET}/runs/run-1/checkpoints/rank-0.json", SELF),
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
    deny("SaveLeftResults", "states:SendTaskSuccess", machine("training_run")),
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
READER, WRITER = (f"arn:aws:iam::210987654321:role/{name}" for name in ("reader", "lab/writer"))
LAKE = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf"
OTHER_SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:payroll-AbCdEf"
ELSEWHERE = [
    *(allow(who, "sts:AssumeRole", READER) for who in ("node", "InspectDataset", "PlanLayout", "CollectResults")),
    *(allow(who, "sts:AssumeRole", WRITER) for who in ("node", "PlanLayout", "ReleaseRest", "OnSweep")),
    *(deny(who, "sts:AssumeRole", ADMIN_ROLE) for who in ("node", "InspectDataset", "PlanLayout", "OnSweep")),
    deny("node", "sts:AssumeRole", "arn:aws:iam::210987654321:role/admin"),
    deny("PlanLayout", "sts:AssumeRole", "arn:aws:iam::999999999999:role/reader"),
    *(deny(who, "sts:AssumeRole", READER) for who in ("AdmitRun", "LaunchFleet", "TrainJob", "OnAgentEvent")),
    deny("machine:training_run", "sts:AssumeRole", READER),
    *(allow(who, "secretsmanager:GetSecretValue", LAKE) for who in ("node", "InspectDataset", "CollectResults")),
    *(deny(who, "secretsmanager:GetSecretValue", OTHER_SECRET) for who in ("node", "InspectDataset", "PlanLayout")),
    *(deny(who, "secretsmanager:GetSecretValue", LAKE) for who in ("AdmitRun", "LaunchFleet", "TrainJob")),
    deny("node", "secretsmanager:PutSecretValue", LAKE),
]
ROWS = [*ELSEWHERE, *ENDING, *LAUNCHING, *COMMANDS, *NODES, *CONTROL]
