"""The vocabulary of the permissions: each word is one right that a function, a machine or a node may hold.

A wildcard that AWS or the data demands says why in `because`; the reason stands beside the finding it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from infra.findings import answer, wildcard_rule
from infra.places import Places

Conditions = Mapping[str, Mapping[str, Any]]
UNSCOPED = "AWS defines no resource for this action, so its policy can name none."
STACK_TAG = "headrace:stack"


@dataclass(frozen=True)
class Grant:
    """One right: actions on resources under conditions."""

    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Conditions = field(default_factory=dict)
    because: str = "Ids are not known before the launch, key names not before the run; the rest of the ARN is fixed."

    def statement(self) -> iam.PolicyStatement:
        """Return the statement of a policy."""
        return iam.PolicyStatement(
            actions=list(self.actions), resources=list(self.resources), conditions=dict(self.conditions)
        )


def document(grants: Sequence[Grant]) -> iam.PolicyDocument:
    """Return the policy of the grants."""
    return iam.PolicyDocument(statements=[one.statement() for one in grants])


def explain(holder: IConstruct, grants: Sequence[Grant]) -> None:
    """Note beside a role or policy why each of its wildcards stands."""
    for grant in grants:
        for resource in grant.resources:
            if "*" in resource:
                answer(holder, wildcard_rule(holder, resource), grant.because)


def role(scope: Construct, id_: str, service: str, grants: Sequence[Grant]) -> iam.Role:
    """Return a role that this service alone may take, with these grants and no others, ever."""
    made = iam.Role(
        scope,
        id_,
        assumed_by=iam.ServicePrincipal(service),
        inline_policies={"Grants": document(grants)} if grants else {},
    )
    explain(made, grants)
    if service == "lambda.amazonaws.com":
        answer(made, "Serverless-LambdaStarPermissions", "Each wildcard is answered for itself.")
    return made


class Words:
    """The rights that the table of permissions is made of, for one stack."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._is_ours = {"StringEquals": {f"aws:ResourceTag/{STACK_TAG}": places.name}}

    # Rows of the run table.

    def read_rows(self) -> Grant:
        """Read items; list runs by the index."""
        table = self.places.table_arn
        return Grant(["dynamodb:GetItem", "dynamodb:Query"], [table, f"{table}/index/by_age"])

    def write_rows(self) -> Grant:
        """Write and change items."""
        return Grant(["dynamodb:PutItem", "dynamodb:UpdateItem"], [self.places.table_arn])

    def delete_rows(self) -> Grant:
        """Remove items."""
        return Grant(["dynamodb:DeleteItem"], [self.places.table_arn])

    # Objects.

    def list_run_bucket(self) -> Grant:
        """List the run bucket, without which S3 answers 403 for what is absent."""
        return Grant(["s3:ListBucket"], [self.places.run_bucket_arn])

    def read_objects(self, *patterns: str) -> Grant:
        """Read objects of the run bucket."""
        return Grant(["s3:GetObject"], self.places.run_objects(*patterns))

    def write_objects(self, *patterns: str) -> Grant:
        """Write objects of the run bucket."""
        return Grant(["s3:PutObject"], self.places.run_objects(*patterns))

    def delete_objects(self, *patterns: str) -> Grant:
        """Delete objects of the run bucket."""
        return Grant(["s3:DeleteObject"], self.places.run_objects(*patterns))

    def list_data(self) -> list[Grant]:
        """List data buckets."""
        buckets = self.places.data_bucket_arns
        return [Grant(["s3:ListBucket"], buckets)] if buckets else []

    def read_data(self) -> list[Grant]:
        """Read every object of the data buckets."""
        objects = [f"{one}/*" for one in self.places.data_bucket_arns]
        return [Grant(["s3:GetObject"], objects)] if objects else []

    def read_results(self) -> list[Grant]:
        """See results that were saved."""
        buckets = self.places.results_bucket_arns
        objects = [f"{one}/*" for one in buckets]
        return [Grant(["s3:ListBucket"], buckets), Grant(["s3:GetObject"], objects)] if buckets else []

    def write_results(self) -> list[Grant]:
        """Save results, in parts where they are large."""
        objects = [f"{one}/*" for one in self.places.results_bucket_arns]
        return [Grant(["s3:PutObject", "s3:AbortMultipartUpload"], objects)] if objects else []

    def reach_elsewhere(self) -> list[Grant]:
        """Assume the roles and read the secrets that jobs may name for buckets that are not ours, and no others."""
        roles, secrets = self.places.data_roles, self.places.data_secrets
        assume = [Grant(["sts:AssumeRole"], roles)] if roles else []
        return [*assume, *([Grant(["secretsmanager:GetSecretValue"], secrets)] if secrets else [])]

    def abort_uploads(self) -> list[Grant]:
        """Remove the parts of uploads that machines left unfinished."""
        buckets = self.places.results_bucket_arns
        objects = [f"{one}/*" for one in buckets]
        return (
            [Grant(["s3:ListBucketMultipartUploads"], buckets), Grant(["s3:AbortMultipartUpload"], objects)]
            if buckets
            else []
        )

    def probe_results(self) -> list[Grant]:
        """Write and remove the probe that tells whether results may be saved, and nothing else."""
        probes = self._probes()
        return [Grant(["s3:PutObject", "s3:DeleteObject"], probes)] if probes else []

    def remove_probe(self) -> list[Grant]:
        """Remove a probe that was left behind."""
        probes = self._probes()
        return [Grant(["s3:DeleteObject"], probes)] if probes else []

    def _probes(self) -> list[str]:
        return [f"{one}/*.headrace-probe" for one in self.places.results_bucket_arns]

    def use_key(self) -> list[Grant]:
        """Use the key of what is kept, where there is one."""
        key = self.places.key_arn
        return [Grant(["kms:Decrypt", "kms:GenerateDataKey"], [key])] if key else []

    # Machines.

    def list_machines(self) -> Grant:
        """List machines."""
        return Grant(["ec2:DescribeInstances"], ["*"], because=UNSCOPED)

    def launch_machines(self) -> list[Grant]:
        """Launch from this stack's templates, into its subnets and groups, tagged as its own, and not otherwise.

        CreateFleet is asked about the same resources as RunInstances (policy of the Karpenter controller), but only
        RunInstances, which follows it, is known to tell the launch template.
        """
        places = self.places
        tagged = {f"aws:RequestTag/{STACK_TAG}": places.name}
        templates = places.ec2("launch-template", places.launch_template_ids)
        from_templates = {"ArnEquals": {"ec2:LaunchTemplate": templates}}
        own = [*places.ec2("instance"), *places.ec2("volume")]
        tags = [*own, *places.ec2("fleet"), *places.ec2("spot-instances-request")]
        return [
            Grant(["ec2:CreateFleet", "ec2:RunInstances"], templates),
            Grant(["ec2:CreateFleet"], [*places.ec2("fleet"), *own], {"StringEquals": tagged}),
            Grant(["ec2:CreateFleet"], self._launched_into()),
            Grant(["ec2:RunInstances"], own, {"StringEquals": tagged, **from_templates}),
            Grant(["ec2:RunInstances"], self._launched_into(), from_templates),
            Grant(
                ["ec2:CreateTags"],
                tags,
                {"StringEquals": {**tagged, "ec2:CreateAction": ["CreateFleet", "RunInstances"]}},
            ),
            self._pass_node_role(),
            self._make_service_role(),
        ]

    def _launched_into(self) -> list[str]:
        """Return what a launch uses or makes that carries no tag of ours."""
        places = self.places
        return [
            *places.ec2("subnet", places.subnet_ids),
            *places.ec2("security-group", places.group_ids),
            *places.ec2("image", places.image_ids, is_owned=False),
            *places.ec2("snapshot", is_owned=False),
            *places.ec2("network-interface"),
            *places.ec2("spot-instances-request"),
            *places.ec2("capacity-reservation"),
            *places.ec2("placement-group", places.placement_groups),
        ]

    def _make_service_role(self) -> Grant:
        """Let EC2 make the role that it works with in an account whose first spot machine this is."""
        service = "spot.amazonaws.com"
        role = self.places.arn("iam", f"role/aws-service-role/{service}/*", is_regional=False)
        return Grant(["iam:CreateServiceLinkedRole"], [role], {"StringEquals": {"iam:AWSServiceName": service}})

    def _pass_node_role(self) -> Grant:
        return Grant(
            ["iam:PassRole"],
            [self.places.node_role_arn],
            {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        )

    def terminate_machines(self) -> Grant:
        """Terminate machines that carry this stack's tag."""
        return Grant(["ec2:TerminateInstances"], self.places.ec2("instance"), self._is_ours)

    def read_offers(self) -> Grant:
        """Read which zones offer which types, how capacity reservations stand, and what templates say."""
        kinds = ("InstanceTypeOfferings", "CapacityReservations", "LaunchTemplateVersions")
        return Grant([f"ec2:Describe{kind}" for kind in kinds], ["*"], because=UNSCOPED)

    def check_surroundings(self) -> list[Grant]:
        """Read images and quotas before anything is launched."""
        quotas = [self.places.arn("servicequotas", "ec2/*")]
        return [
            Grant(["ec2:DescribeImages"], ["*"], because=UNSCOPED),
            Grant(["servicequotas:GetServiceQuota"], quotas),
        ]

    # Documents.

    def send_documents(self) -> list[Grant]:
        """Run this stack's documents on this stack's machines."""
        ours = {"StringEquals": {f"ssm:resourceTag/{STACK_TAG}": self.places.name}}
        return [
            Grant(["ssm:SendCommand"], self.places.document_arns),
            Grant(["ssm:SendCommand"], self.places.ec2("instance"), ours),
        ]

    def see_agents(self) -> Grant:
        """See which machines listen."""
        return Grant(["ssm:DescribeInstanceInformation"], ["*"], because=UNSCOPED)

    def see_commands(self) -> Grant:
        """See how far documents are."""
        actions = ["ssm:ListCommandInvocations", "ssm:ListCommands", "ssm:GetCommandInvocation"]
        return Grant(actions, ["*"], because=UNSCOPED)

    # Executions, events, records.

    def start(self, stem: str) -> Grant:
        """Start executions of one machine."""
        return Grant(["states:StartExecution"], self.places.machine(stem))

    def see_executions(self, *stems: str) -> Grant:
        """See whether executions still run."""
        return Grant(["states:DescribeExecution"], [self.places.executions(one) for one in stems])

    def stop_executions(self, stem: str) -> Grant:
        """Abort executions of one machine."""
        return Grant(["states:StopExecution"], [self.places.executions(stem)])

    def answer_tasks(self) -> Grant:
        """Answer tasks that wait in training_run; AWS scopes this to a machine at best, and the token does the rest."""
        actions = ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"]
        return Grant(actions, self.places.machine("training_run"))

    def fail_tasks(self) -> Grant:
        """Fail tasks that wait in training_run, whose machines are gone."""
        return Grant(["states:SendTaskFailure"], self.places.machine("training_run"))

    def put_events(self, source: str) -> Grant:
        """Publish on the bus, under one name."""
        return Grant(["events:PutEvents"], [self.places.bus_arn], {"StringEquals": {"events:source": source}})

    def write_logs(self, function: str) -> Grant:
        """Write the function's own log."""
        group = self.places.log_group(f"/aws/lambda/{self.places.name}-{function}")
        return Grant(["logs:CreateLogStream", "logs:PutLogEvents"], [group])

    def trace(self) -> Grant:
        """Send traces."""
        return Grant(["xray:PutTraceSegments", "xray:PutTelemetryRecords"], ["*"], because=UNSCOPED)

    def report_failures(self) -> Grant:
        """Hand over an event that failed for good."""
        return Grant(["sqs:SendMessage"], [self.places.dead_letters_arn])
