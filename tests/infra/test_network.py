"""The network: no way in or out but endpoints, the fabric between the fleets, everything among machines that train."""

from __future__ import annotations

from headrace.domain.fabric_names import NVME_SERVICE_PORT
from infra.network import NVME_TCP_PORT
from tests.infra.assembly import Assembly


def admitted(assembly: Assembly) -> set[tuple[str, str, str, int | None]]:
    """Return source, target, protocol and port of each rule between groups."""
    return {
        (plain(one["SourceSecurityGroupId"]), plain(one["GroupId"]), one["IpProtocol"], one.get("FromPort"))
        for one in assembly.of_type("AWS::EC2::SecurityGroupIngress").values()
    }


def plain(group: str) -> str:
    return "storage" if "Storage" in group else "compute" if "Compute" in group else group


def test_the_fabric_s_port_is_the_one_that_exports_use() -> None:
    assert NVME_TCP_PORT == NVME_SERVICE_PORT


def test_the_fleets_reach_each_other_by_the_fabric_alone(options: Assembly) -> None:
    assert admitted(options) == {
        ("compute", "storage", "tcp", 4420),
        ("compute", "storage", "udp", 4791),
        ("storage", "storage", "tcp", 4420),
        ("storage", "storage", "udp", 4791),
        ("storage", "compute", "udp", 4791),
        ("compute", "compute", "-1", None),
    }


def test_efa_has_the_rule_of_the_group_to_itself_that_it_demands(options: Assembly) -> None:
    egress = options.only("AWS::EC2::SecurityGroupEgress")
    assert plain(egress["GroupId"]) == plain(egress["DestinationSecurityGroupId"]) == "compute"
    assert egress["IpProtocol"] == "-1"


def test_no_rule_admits_an_address(options: Assembly, defaults: Assembly) -> None:
    for assembly in (options, defaults):
        rules = [
            *assembly.of_type("AWS::EC2::SecurityGroupIngress").values(),
            *(
                rule
                for group in assembly.of_type("AWS::EC2::SecurityGroup").values()
                for rule in group.get("SecurityGroupIngress", ())
            ),
        ]
        assert len(rules) > 6
        assert [rule for rule in rules if "CidrIp" in rule or "CidrIpv6" in rule] == []


def test_a_new_network_has_no_way_to_the_internet(defaults: Assembly) -> None:
    types = {resource["Type"] for resource in defaults.resources.values()}
    assert not types & {"AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::EIP"}
    subnets = defaults.of_type("AWS::EC2::Subnet").values()
    assert len({subnet["AvailabilityZone"] for subnet in subnets}) == len(subnets) == 3
    assert {subnet["MapPublicIpOnLaunch"] for subnet in subnets} == {False}


def test_endpoints_are_those_that_machines_call_and_lie_in_one_zone(defaults: Assembly, options: Assembly) -> None:
    for assembly, besides in ((defaults, set()), (options, {"sts", "secretsmanager"})):
        found = assembly.of_type("AWS::EC2::VPCEndpoint").values()
        names = {one["ServiceName"].rpartition(".")[2]: one for one in found}
        assert set(names) == {"s3", "ssm", "ssmmessages", "events"} | besides
        assert names["s3"].get("VpcEndpointType", "Gateway") == "Gateway"
        assert names["s3"]["RouteTableIds"]
        for name in {"ssm", "ssmmessages", "events"} | besides:
            assert names[name]["PrivateDnsEnabled"] is True
            assert len(names[name]["SubnetIds"]) == 1


def test_a_given_network_is_used_as_it_is(options: Assembly) -> None:
    types = [resource["Type"] for resource in options.resources.values()]
    assert "AWS::EC2::VPC" not in types
    assert "AWS::EC2::Subnet" not in types
    groups = options.of_type("AWS::EC2::SecurityGroup").values()
    assert {group["VpcId"] for group in groups} == {"vpc-0123456789abcdef0"}
