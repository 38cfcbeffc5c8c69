"""The images that machines boot: built by EC2 Image Builder when the stack is deployed, or a person's own.

A built image belongs to the deployment that built it, and launch templates name it by its id, so that no later build
changes what a fleet boots; the pipelines are for building the same recipe again by hand, to name the result in the
context. Building takes place in the account's default network, or in `image_builder`, since it needs the internet.
"""

from __future__ import annotations

import hashlib

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_imagebuilder as imagebuilder
from constructs import Construct

from infra.checkout import CHECKOUT
from infra.findings import answer
from infra.options import IMAGES, Region

COMPONENT = CHECKOUT / "infra" / "fabric-image.yaml"
VERSION = "1.0.0"
FABRICS = {"headrace:fabric": "tcp roce"}
"""What the component's own validation has proven of an image, as a tag that preflight reads before any launch."""
CANONICAL = "/aws/service/canonical/ubuntu/server/24.04/stable/current"
DEEP_LEARNING = "/aws/service/deeplearning/ami"
PARENTS = {
    "storage-arm64": f"{CANONICAL}/arm64/hvm/ebs-gp3/ami-id",
    "storage-x86_64": f"{CANONICAL}/amd64/hvm/ebs-gp3/ami-id",
    "compute-arm64": f"{DEEP_LEARNING}/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    "compute-x86_64": f"{DEEP_LEARNING}/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
}
"""Public parameters of Canonical and AWS, which Image Builder reads when it builds."""
BUILDERS = {"arm64": ["m7g.large", "m6g.large"], "x86_64": ["m7i.large", "m6i.large"]}
MANAGED = ("EC2InstanceProfileForImageBuilder", "AmazonSSMManagedInstanceCore")


class Images(Construct):
    """`ids` has an AMI id for each image, given or built."""

    def __init__(self, scope: Construct, id_: str, region: Region) -> None:
        super().__init__(scope, id_)
        self._region = region
        self.ids = {name: region.images[name] for name in IMAGES if name in region.images}
        wanted = [name for name in IMAGES if name not in region.images]
        if wanted:
            self._component = self._make_component()
            self._profile = self._make_profile()
            self.ids |= {name: self._build(name) for name in wanted}

    def _make_component(self) -> imagebuilder.CfnComponent:
        data = COMPONENT.read_text(encoding="utf-8")
        name = f"{Stack.of(self).stack_name}-fabric-{_short_hash(data)}"
        return imagebuilder.CfnComponent(self, "Fabric", name=name, platform="Linux", version=VERSION, data=data)

    def _make_profile(self) -> iam.CfnInstanceProfile:
        builder = iam.Role(
            self,
            "BuilderRole",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in MANAGED],
        )
        for name in MANAGED:
            answer(
                builder,
                f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
                "Image Builder demands this policy of the machines that it builds on; they never hold data.",
            )
        return iam.CfnInstanceProfile(self, "BuilderProfile", roles=[builder.role_name])

    def _build(self, name: str) -> str:
        """Return the id of the image that is built; a changed component or parent makes a recipe of another name."""
        architecture = name.partition("-")[2]
        recipe = self._recipe(name)
        infrastructure = self._infrastructure(name, architecture)
        distribution = self._distribution(name)
        imagebuilder.CfnImagePipeline(
            self,
            f"{name}-pipeline",
            name=f"{Stack.of(self).stack_name}-{name}",
            description=f"headrace: builds {name} again when it is started",
            image_recipe_arn=recipe.attr_arn,
            infrastructure_configuration_arn=infrastructure.attr_arn,
            distribution_configuration_arn=distribution.attr_arn,
        )
        image = imagebuilder.CfnImage(
            self,
            f"{name}-image",
            image_recipe_arn=recipe.attr_arn,
            infrastructure_configuration_arn=infrastructure.attr_arn,
            distribution_configuration_arn=distribution.attr_arn,
        )
        return image.attr_image_id

    def _distribution(self, name: str) -> imagebuilder.CfnDistributionConfiguration:
        """Tag what is built; an image keeps no tag of the machine that it was made of."""
        return imagebuilder.CfnDistributionConfiguration(
            self,
            f"{name}-tags",
            name=f"{Stack.of(self).stack_name}-{name}",
            distributions=[
                imagebuilder.CfnDistributionConfiguration.DistributionProperty(
                    region=self._region.name, ami_distribution_configuration={"AmiTags": FABRICS}
                )
            ],
        )

    def _recipe(self, name: str) -> imagebuilder.CfnImageRecipe:
        parent = PARENTS[name]
        digest = _short_hash(COMPONENT.read_text(encoding="utf-8") + parent)
        use = imagebuilder.CfnImageRecipe.ComponentConfigurationProperty(component_arn=self._component.attr_arn)
        return imagebuilder.CfnImageRecipe(
            self,
            f"{name}-recipe",
            name=f"{Stack.of(self).stack_name}-{name}-{digest}",
            version=VERSION,
            parent_image=f"ssm:{parent}",
            components=[use],
            additional_instance_configuration=imagebuilder.CfnImageRecipe.AdditionalInstanceConfigurationProperty(
                systems_manager_agent=imagebuilder.CfnImageRecipe.SystemsManagerAgentProperty(
                    uninstall_after_build=False
                )
            ),
        )

    def _infrastructure(self, name: str, architecture: str) -> imagebuilder.CfnInfrastructureConfiguration:
        group = self._region.builder_security_group
        return imagebuilder.CfnInfrastructureConfiguration(
            self,
            f"{name}-builder",
            name=f"{Stack.of(self).stack_name}-{name}",
            instance_profile_name=self._profile.ref,
            instance_types=BUILDERS[architecture],
            subnet_id=self._region.builder_subnet,
            security_group_ids=[group] if group else None,
            terminate_instance_on_failure=True,
            instance_metadata_options=imagebuilder.CfnInfrastructureConfiguration.InstanceMetadataOptionsProperty(
                http_tokens="required", http_put_response_hop_limit=1
            ),
        )


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
