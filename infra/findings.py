"""Answers findings of cdk-nag beside what they are about: which rule, and why it does not apply."""

from __future__ import annotations

import re
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def answer(construct: IConstruct, rule: str, reason: str) -> None:
    """Note that the rule's finding on the construct is known, and why it stands."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def wildcard_rule(scope: IConstruct, resource: str) -> str:
    """Return the rule of IAM wildcards for one resource, which cdk-nag writes with references in angle brackets."""
    return f"AwsSolutions-IAM5[Resource::{_flat(Stack.of(scope).resolve(resource))}]"


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return re.sub(r"\$\{([^}]*)\}", r"<\1>", value)
    if "Fn::Join" in value:
        return str(value["Fn::Join"][0]).join(_flat(one) for one in value["Fn::Join"][1])
    if "Ref" in value:
        return f"<{value['Ref']}>"
    return f"<{'.'.join(value['Fn::GetAtt'])}>"
