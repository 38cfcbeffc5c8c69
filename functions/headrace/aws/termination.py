"""Asks for the end of machines in small groups: one id that EC2 does not know makes it refuse the whole call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from headrace.aws.error_codes import UNKNOWN_IDS, code_of, meaning_of, message_of
from headrace.domain.errors import AccessDenied

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

GROUP = 50


def terminate(client: EC2Client, node_ids: Sequence[str]) -> tuple[str, ...]:
    """Ask for the end of each; return the ids that EC2 accepted.

    Ids that it does not know are left out, which is no proof that they never were. Every group is asked before the
    first refusal is raised: AccessDenied when a policy forbids it, ClientError for anything else.
    """
    accepted: list[str] = []
    refusals: list[Exception] = []
    for start in range(0, len(node_ids), GROUP):
        try:
            accepted += _group(client, node_ids[start : start + GROUP])
        except (ClientError, AccessDenied) as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]
    return tuple(accepted)


def _group(client: EC2Client, node_ids: Sequence[str]) -> list[str]:
    try:
        answer = client.terminate_instances(InstanceIds=list(node_ids))
    except ClientError as error:
        if code_of(error) in UNKNOWN_IDS:
            return _halves(client, node_ids)
        if meaning_of(code_of(error)) == "denied":
            raise AccessDenied(
                f"EC2 refused to terminate {', '.join(node_ids)}: {message_of(error)}. "
                "Allow ec2:TerminateInstances for this stack's machines"
            ) from error
        raise
    return [one["InstanceId"] for one in answer.get("TerminatingInstances", ())]


def _halves(client: EC2Client, node_ids: Sequence[str]) -> list[str]:
    """Ask for the known ones among the ids, by parts; a single unknown one is left out."""
    if len(node_ids) == 1:
        return []
    middle = len(node_ids) // 2
    return [*_group(client, node_ids[:middle]), *_group(client, node_ids[middle:])]
