"""Synthesises apps for the tests, under both packs of cdk-nag: python -m tests.infra.synthesize OUT.

It is a program of its own, so that the CDK's node process lives only as long as it must.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from aws_cdk import App, Stack, Validations
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from infra.app import build

IMAGE = "ami-0123456789abcdef{}"
CHOICES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "options": {
        "stack": "lab",
        "regions": {
            "eu-west-1": {
                "vpc": {
                    "id": "vpc-0123456789abcdef0",
                    "subnets": [
                        {"id": "subnet-0123456789abcdef0", "zone": "eu-west-1a"},
                        {"id": "subnet-0123456789abcdef1", "zone": "eu-west-1b"},
                    ],
                    "route_tables": ["rtb-0123456789abcdef0"],
                    "endpoints": True,
                },
                "images": {
                    "storage-arm64": IMAGE.format(0),
                    "storage-x86_64": IMAGE.format(1),
                    "compute-arm64": IMAGE.format(2),
                    "compute-x86_64": IMAGE.format(3),
                },
                "efa_interfaces": {"p5.48xlarge": 32},
            }
        },
        "data_buckets": ["data-a", "data-b"],
        "results_buckets": "results-a",
        "data_roles": "arn:aws:iam::210987654321:role/reader,arn:aws:iam::210987654321:role/lab/writer",
        "data_secrets": ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf"],
        "kms_key": "create",
        "permissions_boundary": "arn:aws:iam::123456789012:policy/boundary",
        "alarm_email": "operator@example.com",
        "dashboard": "true",
        "tags": {"team": "vision"},
    },
}


def write(app: App) -> None:
    """Write the app's cloud assembly; what cdk-nag finds ends up in its validation report."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise


def main(out: Path) -> None:
    """Write one cloud assembly per choice below the folder, and one with faults that must be found."""
    for name, context in CHOICES.items():
        app = App(outdir=str(out / name), context=context, analytics_reporting=False)
        build(app)
        write(app)
    planted = App(outdir=str(out / "planted"), analytics_reporting=False)
    s3.Bucket(Stack(planted, "planted-us-east-1"), "Open")
    write(planted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
