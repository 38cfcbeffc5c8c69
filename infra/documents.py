"""The Systems Manager documents, exactly as the files have them."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.checkout import CHECKOUT

FOLDER = CHECKOUT / "agent" / "documents"


def document_files() -> list[Path]:
    """Return the documents, by name."""
    return sorted(FOLDER.glob("*.yaml"))


class Documents(Construct):
    """One document for each file."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        self.names = [f"{Stack.of(self).stack_name}-{path.stem}" for path in document_files()]
        for path, name in zip(document_files(), self.names, strict=True):
            document = ssm.CfnDocument(
                self,
                path.stem,
                name=name,
                content={},
                document_format="YAML",
                document_type="Command",
                target_type="/AWS::EC2::Instance",
                update_method="NewVersion",
            )
            # AWS takes text here, the CDK's type for it only objects.
            document.add_property_override("Content", path.read_text(encoding="utf-8"))
