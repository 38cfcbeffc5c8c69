"""Context is checked once, and each refusal says which value, what was found and what to write."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from infra.checkout import CHECKOUT
from infra.options import ENDPOINTS, BadOption, Options, read_options

VPC = {"id": "vpc-1", "subnets": [{"id": "subnet-1", "zone": "us-east-1a"}]}


class Context:
    """A node of which only the context is asked."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def try_get_context(self, name: str) -> Any:
        return self._given.get(name)


def read(**given: Any) -> Options:
    return read_options(cast("Any", Context(given)))


def test_nothing_given_is_one_region_with_all_that_is_needed() -> None:
    options = read()
    assert options.stack == "headrace"
    (region,) = options.regions
    assert (region.name, region.vpc, region.zones, region.endpoints) == ("us-east-1", None, 3, ENDPOINTS)
    assert not options.dashboard


def test_the_file_of_the_app_gives_the_defaults() -> None:
    given = json.loads((CHECKOUT / "cdk.json").read_text())
    assert given["app"] == "python3 -m infra.app"
    assert read(**given["context"]) == read()


def test_regions_are_a_list_or_text_with_commas_or_choices_by_region() -> None:
    forms: list[Any] = [["us-east-1", "eu-west-1"], "us-east-1, eu-west-1", {"us-east-1": {}, "eu-west-1": {}}]
    for given in forms:
        assert [region.name for region in read(regions=given).regions] == ["us-east-1", "eu-west-1"]


def test_endpoints_for_the_data_of_others_come_with_what_they_are_for() -> None:
    role, secret = (
        "arn:aws:iam::123456789012:role/a/b",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-AbCdEf",
    )
    assert read().endpoints_for_data == ()
    assert read(data_roles=role).endpoints_for_data == ("sts",)
    assert read(data_roles=[role], data_secrets=[secret]).endpoints_for_data == ("sts", "secretsmanager")


def test_a_network_that_exists_is_read() -> None:
    (region,) = read(regions={"us-east-1": {"vpc": VPC}}).regions
    assert region.vpc is not None
    assert [(one.subnet_id, one.zone) for one in region.vpc.subnets] == [("subnet-1", "us-east-1a")]
    assert not region.vpc.has_endpoints_made


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"stack": "Head Race"}, "context stack: 'Head Race' should be 1 to 20 lower-case letters"),
        ({"stack": "a" * 21}, "1 to 20 lower-case letters"),
        ({"regions": {"us-east-1": {"vcp": VPC}}}, "context regions.us-east-1: vcp is not known; known are efa_interf"),
        (
            {"regions": {"us-east-1": {"vpc": {"id": "vpc-1"}}}},
            'context regions.us-east-1.vpc: give "id" and "subnets"',
        ),
        (
            {"regions": {"us-east-1": {"vpc": {"id": "v", "subnets": [*VPC["subnets"], *VPC["subnets"]]}}}},
            "one subnet per zone",
        ),
        ({"regions": {"us-east-1": {"images": {"storage": "ami-1"}}}}, "known are compute-arm64, compute-x86_64"),
        ({"regions": 3}, "context regions: should be a list of names, found 3"),
        ({"tags": ["a"]}, "context tags: should be an object, found \\['a'\\]"),
        ({"kms_key": {"a": 1}}, "context kms_key: should be text"),
        (
            {"data_roles": "arn:aws:iam::123456789012:role/*"},
            "role/\\*' should be arn:aws:iam::<12 digits>:role/<name>",
        ),
        ({"data_roles": ["reader"]}, "context data_roles: 'reader' should be"),
        ({"data_secrets": "lake"}, "context data_secrets: 'lake' should be arn:aws:secretsmanager:"),
    ],
)
def test_a_wrong_value_is_refused_with_what_to_write(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        read(**given)
