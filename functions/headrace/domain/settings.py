"""What differs between a cloud of machines, one machine and a simulation: timing, and where things are kept."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.domain.policy import ALLOW_ALL, Policy


@dataclass(frozen=True)
class Settings:
    """What differs between a cloud of machines and one machine, in seconds where it is time."""

    run_bucket: str
    poll_seconds: int
    heartbeat_seconds: int
    heartbeat_timeout_seconds: int
    node_boot_timeout_seconds: int
    configure_timeout_seconds: int
    stop_grace_seconds: int
    launch_attempts: int
    process_nodes: bool
    """True where nodes are processes on one machine, which share a file system and format no disks."""
    policy: Policy = ALLOW_ALL
    """What the team that runs this allows."""
    rules_prefix: str | None = None
    """Below which in the run bucket the team's policy and prices are; None where they come with these settings."""
    owner_process: str | None = None
    """`pid:start-time-ticks` of the process that drives the runs, where it is one that can die."""
    sweep_grace_seconds: int = 120
    """What lies at least between the two looks after which the sweep acts; a pass comes about that often."""
    boot_grace_seconds: int = 120
    """How old a machine is at least before the sweep suspects it."""
    idle_lease_seconds: int = 1200
    """How long a machine without work stays when the control plane renews its lease no more."""
    large_above_nodes: int = 20
    """Runs with a larger fleet than this have events that do not look at all of its nodes."""
    node_folder_prefix: str = ""
    """What precedes a node's id in the name of its folder in the run bucket.

    On AWS it is the node role's unique id and a colon: the folder is then `aws:userid` of the machine's credentials,
    so that one policy lets each machine read its own folder only.
    """
    region: str | None = None
    """Where machines are launched, and so where data are taken to be that name no region; None where it matters not."""
