"""What a function knows of its stack, read from its environment, and the timing of runs on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from headrace.domain.errors import HeadraceError
from headrace.domain.settings import Settings

POLL_SECONDS = 15
"""Long enough that two hours of polling stay far below the 25,000 events of a history (aws-facts.md section 1)."""

HEARTBEAT_SECONDS = 15
NODE_BOOT_SECONDS = 900
"""Systems Manager shows a machine up to 6 minutes after it runs (aws-facts.md section 3); big ones boot for minutes."""

UNSEEN_SECONDS = 300
"""How long a new machine may be unknown to other calls (aws-facts.md section 2)."""


class BadEnvironment(HeadraceError):
    """A function's environment lacks something; the text says what the stack should have set."""


class StackSettings(NamedTuple):
    """The stack as its functions see it."""

    stack: str
    run_bucket: str
    node_role_id: str
    subnets: dict[str, str]
    """Zone to subnet, the preferred zone first."""
    machines: str
    """ARN of the stack's state machines up to each one's name."""
    groups: Mapping[str, str] = MappingProxyType({})
    """Zone to cluster placement group."""
    efa_types: frozenset[str] = frozenset()
    """Compute types that have a launch template of their own, which names their EFA interfaces."""

    @property
    def region(self) -> str:
        """The stack's region, the fourth part of every ARN of it."""
        return self.machines.split(":")[3]


def read_stack(environ: Mapping[str, str]) -> StackSettings:
    """Return what the variables HEADRACE_* say. Raises BadEnvironment, naming each that is absent or malformed."""
    names = ("STACK", "RUN_BUCKET", "NODE_ROLE_ID", "SUBNETS", "MACHINES")
    found = {name: environ.get(f"HEADRACE_{name}", "") for name in names}
    absent = [f"HEADRACE_{name}" for name, value in found.items() if not value]
    if absent:
        raise BadEnvironment(f"the environment has no {', '.join(absent)}; the stack sets them, so deploy it again")
    return StackSettings(
        stack=found["STACK"],
        run_bucket=found["RUN_BUCKET"],
        node_role_id=found["NODE_ROLE_ID"],
        subnets=_by_zone("SUBNETS", found["SUBNETS"], "subnet-1"),
        machines=found["MACHINES"],
        groups=_by_zone("PLACEMENT_GROUPS", environ.get("HEADRACE_PLACEMENT_GROUPS", ""), "group-1"),
        efa_types=frozenset(filter(None, environ.get("HEADRACE_EFA_TYPES", "").split(","))),
    )


def _by_zone(variable: str, text: str, example: str) -> dict[str, str]:
    """Return zone to name of `subnet-1:us-east-1a,subnet-2:us-east-1b`; a zone's first one counts."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, _, zone = part.strip().partition(":")
        if not name or not zone:
            raise BadEnvironment(
                f"HEADRACE_{variable}: {part!r} is not like {example}:us-east-1a; deploy the stack again"
            )
        found.setdefault(zone, name)
    return found


def run_settings(stack: StackSettings) -> Settings:
    """Return the settings of runs on machines that boot, install and shut down in minutes."""
    return Settings(
        run_bucket=stack.run_bucket,
        poll_seconds=POLL_SECONDS,
        heartbeat_seconds=HEARTBEAT_SECONDS,
        heartbeat_timeout_seconds=90,
        node_boot_timeout_seconds=NODE_BOOT_SECONDS,
        configure_timeout_seconds=NODE_BOOT_SECONDS,
        stop_grace_seconds=120,
        launch_attempts=3,
        process_nodes=False,
        boot_grace_seconds=UNSEEN_SECONDS,
        node_folder_prefix=f"{stack.node_role_id}:",
        region=stack.region,
        rules_prefix="config/",
    )
