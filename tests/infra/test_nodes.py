"""What machines are launched from: templates that keep metadata close, end on shutdown, and tell no secret."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.aws.images import FABRIC, ROOT_DEVICE
from infra import nodes
from infra.checkout import CHECKOUT
from infra.options import IMAGES
from tests.infra.assembly import Assembly
from tests.infra.references import ROLE_ID, RUN_BUCKET

USER_DATA_BYTES_MAX = 16 * 1024


@pytest.fixture(params=["defaults", "options"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    found: Assembly = request.getfixturevalue(request.param)
    return found


def templates(assembly: Assembly) -> dict[str, dict[str, Any]]:
    found = assembly.by_name("AWS::EC2::LaunchTemplate", "LaunchTemplateName")
    return {name: one["LaunchTemplateData"] for name, one in found.items()}


def test_there_is_one_for_each_role_and_architecture(defaults: Assembly) -> None:
    assert set(templates(defaults)) == set(IMAGES)


def test_metadata_needs_a_token_goes_one_hop_and_tells_tags(assembly: Assembly) -> None:
    for template in templates(assembly).values():
        assert template["MetadataOptions"] == {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "HttpProtocolIpv6": "disabled",
            "InstanceMetadataTags": "enabled",
        }


def test_a_shutdown_from_inside_ends_the_machine_and_its_disk(assembly: Assembly) -> None:
    for template in templates(assembly).values():
        assert template["InstanceInitiatedShutdownBehavior"] == "terminate"
        (root,) = template["BlockDeviceMappings"]
        assert root["Ebs"]["DeleteOnTermination"] is True
        assert root["Ebs"]["Encrypted"] is True


def test_each_fleet_has_its_group_and_no_public_address(defaults: Assembly) -> None:
    for name, template in templates(defaults).items():
        (interface,) = template["NetworkInterfaces"]
        assert interface["AssociatePublicIpAddress"] is False
        assert interface["InterfaceType"] == "interface"
        assert [name.partition("-")[0] in group.lower() for group in interface["Groups"]] == [True]


def test_user_data_fits_and_is_the_same_for_every_machine_of_a_stack(assembly: Assembly) -> None:
    (text,) = {template["UserData"] for template in templates(assembly).values()}
    assert len(text.encode()) < USER_DATA_BYTES_MAX / 4
    assert "@" not in text.replace("@-", "")
    assert f"HEADRACE_RUN_BUCKET='{RUN_BUCKET}' HEADRACE_NODE_ROLE_ID='{ROLE_ID}'" in text
    assert text.startswith("#!/bin/bash\n")


def test_images_are_those_that_a_person_gave(options: Assembly) -> None:
    images = {name: template["ImageId"] for name, template in templates(options).items() if name in IMAGES}
    assert images == {name: f"ami-0123456789abcdef{number}" for number, name in enumerate(IMAGES)}
    assert not any(one["Type"].startswith("AWS::ImageBuilder") for one in options.resources.values())


def test_images_are_built_when_none_is_given_and_named_by_their_id(defaults: Assembly) -> None:
    for name, template in templates(defaults).items():
        assert template["ImageId"].startswith("ami-Images" + name.replace("-", "").replace("_", ""))
    recipes = defaults.of_type("AWS::ImageBuilder::ImageRecipe").values()
    assert len(recipes) == len(defaults.of_type("AWS::ImageBuilder::ImagePipeline")) == 4
    assert all(recipe["ParentImage"].startswith("ssm:/aws/service/") for recipe in recipes)
    assert all("24.04" in recipe["ParentImage"] for recipe in recipes)


def test_what_is_built_states_the_fabrics_that_its_recipe_proves(defaults: Assembly) -> None:
    made = defaults.of_type("AWS::ImageBuilder::DistributionConfiguration").values()
    tags = [one["Distributions"][0]["AmiDistributionConfiguration"]["AmiTags"] for one in made]
    assert tags == [{FABRIC: "tcp roce"}] * 4
    assert ROOT_DEVICE == nodes.ROOT_DEVICE
    recipe = (CHECKOUT / "infra" / "fabric-image.yaml").read_text()
    assert all(f" {module} " in recipe for module in ("nvmet-tcp", "nvme-tcp", "nvmet-rdma", "nvme-rdma", "rdma_rxe"))


def test_a_type_with_efa_has_one_interface_on_each_card(options: Assembly) -> None:
    interfaces = templates(options)["compute-x86_64-p5.48xlarge"]["NetworkInterfaces"]
    assert [one["NetworkCardIndex"] for one in interfaces] == list(range(32))
    assert [one["InterfaceType"] for one in interfaces] == ["efa", *["efa-only"] * 31]
    assert [one["DeviceIndex"] for one in interfaces] == [0, *[1] * 31]
