"""The network of the machines: subnets without a way to the internet, endpoints they call, two security groups."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Fn, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.findings import answer
from infra.options import Region, Subnet

ADDRESSES = "10.71.0.0/16"
SUBNET_MASK = 20
"""4,091 addresses in each zone, more than the largest fleet has machines."""
NVME_TCP_PORT = 4420
"""IANA's port for NVMe over Fabrics, which exports and connections use."""
ROCE_UDP_PORT = 4791
"""IANA's port for RoCE v2."""
HTTPS_PORT = 443


class Network(Construct):
    """The given network or a new one; `subnets` has one per zone."""

    def __init__(self, scope: Construct, id_: str, region: Region, endpoints_for_data: Sequence[str] = ()) -> None:
        super().__init__(scope, id_)
        self._region = region
        self._endpoints = tuple(dict.fromkeys((*region.endpoints, *endpoints_for_data)))
        if region.vpc is None:
            self._make()
        else:
            self.vpc_id, self.subnets = region.vpc.vpc_id, region.vpc.subnets
            self._route_tables: Sequence[str] = region.vpc.route_tables
        self.placement_groups = tuple(self._placement_group(number) for number, _ in enumerate(self.subnets))
        self.storage = self._group("Storage", "headrace machines that hold data sets")
        self.compute = self._group("Compute", "headrace machines that train")
        self._open_fabric()
        if region.vpc is None or region.vpc.has_endpoints_made:
            self._make_endpoints()

    @property
    def subnets_with_zones(self) -> str:
        """Return `subnet-id:zone,…`, as functions are told."""
        return Fn.join(",", [Fn.join(":", [one.subnet_id, one.zone]) for one in self.subnets])

    @property
    def placement_groups_with_zones(self) -> str:
        """Return `group:zone,…`, as functions are told."""
        pairs = zip(self.placement_groups, self.subnets, strict=True)
        return Fn.join(",", [Fn.join(":", [name, subnet.zone]) for name, subnet in pairs])

    def _placement_group(self, number: int) -> str:
        """Return the name of a cluster placement group for one zone, which CloudFormation chooses itself.

        A group stands in the zone of what is first launched into it, so that each zone needs its own.
        """
        return ec2.CfnPlacementGroup(self, f"Cluster{number}", strategy="cluster").ref

    @property
    def group_ids(self) -> tuple[str, str]:
        """Return the ids of both security groups."""
        return self.storage.attr_group_id, self.compute.attr_group_id

    def _make(self) -> None:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(ADDRESSES),
            availability_zones=[Fn.select(number, Fn.get_azs()) for number in range(self._region.zones)],
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Machines", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=SUBNET_MASK
                )
            ],
            restrict_default_security_group=False,
        )
        answer(
            vpc,
            "AwsSolutions-VPC7",
            "Flow logs of a storage fabric would cost more than the network; accounts that want them set them.",
        )
        self.vpc_id = vpc.vpc_id
        self.subnets = tuple(Subnet(one.subnet_id, one.availability_zone) for one in vpc.isolated_subnets)
        self._route_tables = [one.route_table.route_table_id for one in vpc.isolated_subnets]

    def _group(self, id_: str, what: str) -> ec2.CfnSecurityGroup:
        anywhere = ec2.CfnSecurityGroup.EgressProperty(
            ip_protocol="-1", cidr_ip="0.0.0.0/0", description="Routes decide what is reached"
        )
        return ec2.CfnSecurityGroup(
            self, id_, vpc_id=self.vpc_id, group_description=what, security_group_egress=[anywhere]
        )

    def _open_fabric(self) -> None:
        """Admit the fabric in both directions, since an answer of RoCE is a datagram of its own, and compute to itself.

        EFA demands the rule of a group to itself outwards too; an address range does not count.
        """
        for source in (self.compute, self.storage):
            self._admit(source, self.storage, "tcp", NVME_TCP_PORT)
            self._admit(source, self.storage, "udp", ROCE_UDP_PORT)
        self._admit(self.storage, self.compute, "udp", ROCE_UDP_PORT)
        self._admit(self.compute, self.compute, "-1", None)
        ec2.CfnSecurityGroupEgress(
            self,
            "ComputeToItself",
            group_id=self.compute.attr_group_id,
            destination_security_group_id=self.compute.attr_group_id,
            ip_protocol="-1",
            description="EFA between machines of one job",
        )

    def _admit(
        self, source: ec2.CfnSecurityGroup, target: ec2.CfnSecurityGroup, protocol: str, port: int | None
    ) -> None:
        what = "All" if port is None else f"{protocol.title()}{port}"
        ec2.CfnSecurityGroupIngress(
            self,
            f"{source.node.id}To{target.node.id}{what}",
            group_id=target.attr_group_id,
            source_security_group_id=source.attr_group_id,
            ip_protocol=protocol,
            from_port=port,
            to_port=port,
            description=f"{source.node.id} to {target.node.id}",
        )

    def _make_endpoints(self) -> None:
        """Make the endpoints; interface endpoints lie in one zone, which serves all, since each zone is billed."""
        services = f"com.amazonaws.{Stack.of(self).region}"
        if self._route_tables:
            ec2.CfnVPCEndpoint(
                self, "S3", vpc_id=self.vpc_id, service_name=f"{services}.s3", route_table_ids=list(self._route_tables)
            )
        group = self._endpoint_group()
        for name in self._endpoints:
            ec2.CfnVPCEndpoint(
                self,
                name.title(),
                vpc_id=self.vpc_id,
                service_name=f"{services}.{name}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[self.subnets[0].subnet_id],
                security_group_ids=[group.attr_group_id],
            )

    def _endpoint_group(self) -> ec2.CfnSecurityGroup:
        from_machines = [
            ec2.CfnSecurityGroup.IngressProperty(
                ip_protocol="tcp",
                from_port=HTTPS_PORT,
                to_port=HTTPS_PORT,
                source_security_group_id=group,
                description="HTTPS from machines",
            )
            for group in self.group_ids
        ]
        return ec2.CfnSecurityGroup(
            self,
            "Endpoints",
            vpc_id=self.vpc_id,
            group_description="headrace endpoints of AWS services",
            security_group_ingress=from_machines,
        )
