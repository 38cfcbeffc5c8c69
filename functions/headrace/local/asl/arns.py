"""Names of machines and executions as ARNs of an account and a region that say what they are."""

from __future__ import annotations

ACCOUNT = "000000000000"
REGION = "local"


def machine_arn(machine: str) -> str:
    """Return the ARN of a state machine."""
    return f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{machine}"


def execution_arn(machine: str, name: str) -> str:
    """Return the ARN of an execution."""
    return f"arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}"
