"""Everything in one region, in the order in which it can be read."""

from __future__ import annotations

from aws_cdk import CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.alarms import Alarms
from infra.bus import Bus
from infra.dashboard import Dashboard
from infra.documents import Documents
from infra.functions import Functions
from infra.grants import STACK_TAG, document, explain
from infra.guard import Guard
from infra.images import Images
from infra.keys import make_key
from infra.machines import Machines, calls
from infra.network import Network
from infra.nodes import AgentBundle, Nodes, Surroundings
from infra.options import Options, Region
from infra.permissions import function_grants, machine_grants, node_grants
from infra.places import Places
from infra.rules import Rules
from infra.run_bucket import RunBucket
from infra.run_table import RunTable
from infra.schedule import ExampleSchedule


class HeadraceStack(Stack):
    """headrace in one region of one account."""

    def __init__(self, scope: Construct, id_: str, options: Options, region: Region) -> None:
        what = "headrace: storage and compute for one training job at a time, and nothing left of it"
        super().__init__(scope, id_, stack_name=options.stack, env=Environment(region=region.name), description=what)
        self._options, self._region = options, region
        self._keep()
        self._launch()
        self.places = self._places()
        self._allow_nodes()
        self._act()
        self._watch()
        self._guard()
        self._label()

    def _keep(self) -> None:
        """Make what remembers."""
        self.key = make_key(self, self._options.kms_key)
        self.bucket = RunBucket(self, "RunBucket", self.key)
        self.table = RunTable(self, "RunTable", self.key)

    def _launch(self) -> None:
        """Make what machines are launched from, into and with."""
        self.network = Network(self, "Network", self._region, self._options.endpoints_for_data)
        self.images = Images(self, "Images", self._region)
        self.documents = Documents(self, "Documents")
        self.bundle = AgentBundle(self, "AgentBundle")
        self.node_role = iam.Role(self, "NodeRole", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        surroundings = Surroundings(self.bucket.bucket_name, *self.network.group_ids, self._region.efa_interfaces)
        self.nodes = Nodes(self, "Nodes", self.node_role, self.bundle, self.images.ids, surroundings)

    def _places(self) -> Places:
        """Return the addresses that permissions speak of."""
        options = self._options
        return Places(
            stack=self,
            run_bucket=self.bucket.bucket_name,
            run_bucket_arn=self.bucket.bucket_arn,
            data_bucket_arns=self._buckets(options.data_buckets),
            results_bucket_arns=self._buckets(options.results_buckets),
            data_roles=options.data_roles,
            data_secrets=options.data_secrets,
            key_arn=self.key.key_arn if self.key else None,
            bundle_arn=self.bundle.object_arn,
            node_role_arn=self.node_role.role_arn,
            launch_template_ids=self.nodes.template_ids,
            image_ids=tuple(self.images.ids.values()),
            subnet_ids=tuple(one.subnet_id for one in self.network.subnets),
            placement_groups=self.network.placement_groups,
            group_ids=self.network.group_ids,
            documents=tuple(self.documents.names),
        )

    def _buckets(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"arn:{self.partition}:s3:::{name}" for name in names)

    def _allow_nodes(self) -> None:
        """Give machines their rights, which name what is launched from their own role."""
        grants = node_grants(self.places)
        policy = iam.Policy(self, "NodeGrants", document=document(grants), roles=[self.node_role])
        explain(policy, grants)

    def _act(self) -> None:
        """Make what decides: functions, machines, and what starts them."""
        places = self.places
        self.bus = Bus(self, "Bus")
        self.functions = Functions(self, "Functions", self._environment(), function_grants(places))
        self.machines = Machines(self, "Machines", self.functions.versions, machine_grants(places, calls()))
        self.rules = Rules(self, "Rules", places, self.bus, self.functions.aliases, self.machines.aliases)
        self.schedule = ExampleSchedule(self, "Schedule", places, self.machines.aliases["training_run"])

    def _environment(self) -> dict[str, str]:
        """Return what every function is told."""
        return {
            "HEADRACE_STACK": self.stack_name,
            "HEADRACE_RUN_BUCKET": self.bucket.bucket_name,
            "HEADRACE_NODE_ROLE_ID": self.node_role.role_id,
            "HEADRACE_SUBNETS": self.network.subnets_with_zones,
            "HEADRACE_MACHINES": self.places.machines_prefix,
            "HEADRACE_PLACEMENT_GROUPS": self.network.placement_groups_with_zones,
            "HEADRACE_EFA_TYPES": ",".join(sorted(self._region.efa_interfaces)),
            "POWERTOOLS_SERVICE_NAME": "headrace",
            "POWERTOOLS_METRICS_NAMESPACE": "headrace",
            "POWERTOOLS_LOG_LEVEL": "INFO",
        }

    def _watch(self) -> None:
        """Make what tells a person."""
        functions, prefix, letters = self.functions.functions, self.places.machines_prefix, self.bus.dead_letters
        Alarms(self, "Alarms", functions, letters, prefix, self._options.alarm_email)
        if self._options.dashboard:
            Dashboard(self, "Dashboard", functions, letters, prefix, list(self.machines.aliases))

    def _guard(self) -> None:
        """Delete nothing before it is sure that no run lives."""
        needed = [self.bucket, self.table, self.network, self.documents, self.nodes, self.bus]
        acting = [self.functions, self.machines, self.rules, self.schedule]
        Guard(self, "Guard", self.functions.functions["OnStackDelete"], [*needed, *acting])

    def _label(self) -> None:
        """Tag everything, bound every role, and say what a person needs to know."""
        Tags.of(self).add(STACK_TAG, self.stack_name)
        for name, value in self._options.tags.items():
            Tags.of(self).add(name, value)
        if arn := self._options.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", arn)
            iam.PermissionsBoundary.of(self).apply(boundary)
        CfnOutput(self, "RunBucketName", value=self.bucket.bucket_name, description="Upload job files below jobs/")
        CfnOutput(
            self, "TrainingRun", value=self.machines.aliases["training_run"].attr_arn, description="Start runs here"
        )
