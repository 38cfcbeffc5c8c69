"""What references in a template would give once it is deployed: made-up ids, and the ARNs that follow from names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ACCOUNT, PARTITION = "123456789012", "aws"
IDS = {
    "AWS::EC2::Subnet": "subnet-",
    "AWS::EC2::SecurityGroup": "sg-",
    "AWS::EC2::VPC": "vpc-",
    "AWS::EC2::PlacementGroup": "group-",
    "AWS::ImageBuilder::Image": "ami-",
}
"""How the ids of resources begin; what follows here is the logical id."""
NAMED = {
    "AWS::Lambda::Function": ("lambda", "function:", "FunctionName"),
    "AWS::SQS::Queue": ("sqs", "", "QueueName"),
    "AWS::StepFunctions::StateMachine": ("states", "stateMachine:", "StateMachineName"),
    "AWS::Events::EventBus": ("events", "event-bus/", "Name"),
    "AWS::DynamoDB::Table": ("dynamodb", "table/", "TableName"),
    "AWS::KMS::Key": ("kms", "key/", ""),
}
"""Service, what precedes the name in the ARN, and the property that has the name."""
QUALIFIERS = {"AWS::Lambda::Version": "1", "AWS::Lambda::Alias": "live"}
ROLE_ID = "AROAEXAMPLEROLEID"
RUN_BUCKET = "run-bucket"


class References:
    """Resolves intrinsic functions of one template in one region."""

    def __init__(self, resources: Mapping[str, Mapping[str, Any]], region: str) -> None:
        self._resources = resources
        self._region = region
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": lambda given: self._attribute(*given),
            "Fn::Join": lambda given: self._join(*given),
            "Fn::Select": lambda given: self.resolved(given[1])[int(given[0])],
            "Fn::Split": lambda given: str(self.resolved(given[1])).split(given[0]),
            "Fn::GetAZs": lambda _: [f"{region}{letter}" for letter in "abcdef"],
            "Fn::Base64": self.resolved,
        }
        self._pseudo = {
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": PARTITION,
            "AWS::Region": region,
            "AWS::URLSuffix": "amazonaws.com",
        }

    def resolved(self, value: Any) -> Any:
        """Return the value with references replaced. Raises KeyError for a function that is not known here."""
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if not isinstance(value, dict):
            return self._substituted(value) if isinstance(value, str) else value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Fn::Sub":
                return self.resolved(argument)
            if function == "Ref" or function.startswith("Fn::"):
                return self._functions[function](argument)
        return {name: self.resolved(one) for name, one in value.items()}

    def _join(self, separator: str, parts: list[Any]) -> str:
        return separator.join(str(self.resolved(one)) for one in parts)

    def _substituted(self, text: str) -> str:
        for name, value in self._pseudo.items():
            text = text.replace(f"${{{name}}}", value)
        return text

    def _ref(self, name: str) -> str:
        if name in self._pseudo:
            return self._pseudo[name]
        type_ = self._resources.get(name, {}).get("Type")
        if type_ == "AWS::S3::Bucket":
            return RUN_BUCKET
        if type_ == "AWS::EC2::LaunchTemplate":
            return f"lt-{self._resources[name]['Properties']['LaunchTemplateName']}"
        if type_ in QUALIFIERS:
            function = self._resources[name]["Properties"]["FunctionName"]["Ref"]
            return f"{self._attribute(function, 'Arn')}:{QUALIFIERS[type_]}"
        return f"{IDS.get(str(type_), '')}{name}"

    def _attribute(self, name: str, attribute: str) -> str:
        type_ = str(self._resources[name]["Type"])
        if attribute == "Arn":
            return self._arn(name, type_)
        if attribute == "RoleId":
            return ROLE_ID
        if attribute == "AvailabilityZone":
            return str(self.resolved(self._resources[name]["Properties"]["AvailabilityZone"]))
        return f"{IDS[type_]}{name}" if type_ in IDS else f"{name}.{attribute}"

    def _arn(self, name: str, type_: str) -> str:
        if type_ == "AWS::S3::Bucket":
            return f"arn:{PARTITION}:s3:::{RUN_BUCKET}"
        if type_ == "AWS::IAM::Role":
            return f"arn:{PARTITION}:iam::{ACCOUNT}:role/{name}"
        if type_ not in NAMED:
            return f"{name}.Arn"
        service, kind, property_ = NAMED[type_]
        own = self._resources[name]["Properties"].get(property_, name)
        return f"arn:{PARTITION}:{service}:{self._region}:{ACCOUNT}:{kind}{own}"
