"""What holds on one machine: timing in seconds, where things are kept, what a node finds in its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headrace.domain.settings import Settings
from headrace.local.owner import this_process

RUN_BUCKET = "headrace-runs"
REGION = "us-east-1"
LOOPBACK = "127.0.0.1,localhost"


def local_settings() -> Settings:
    """Return the settings of one machine, owned by this process."""
    return Settings(
        run_bucket=RUN_BUCKET,
        poll_seconds=1,
        heartbeat_seconds=1,
        heartbeat_timeout_seconds=6,
        node_boot_timeout_seconds=20,
        configure_timeout_seconds=30,
        stop_grace_seconds=5,
        launch_attempts=3,
        process_nodes=True,
        owner_process=this_process(),
        sweep_grace_seconds=20,
        boot_grace_seconds=20,
        idle_lease_seconds=60,
    )


def vm_settings() -> Settings:
    """Return the settings of one machine whose nodes are guests: emulated, they boot and answer slowly."""
    return replace(
        local_settings(),
        heartbeat_seconds=5,
        heartbeat_timeout_seconds=120,
        node_boot_timeout_seconds=300,
        configure_timeout_seconds=300,
        stop_grace_seconds=15,
        process_nodes=False,
        boot_grace_seconds=300,
        idle_lease_seconds=300,
    )


def child_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for child processes: no keys or marks of ours, this interpreter's tools first, no proxy."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(("AWS_", "HEADRACE_", "RCLONE_"))}
    tools = str(Path(sys.executable).parent)
    kept["PATH"] = os.pathsep.join(filter(None, (tools, kept.get("PATH", os.defpath))))
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, (LOOPBACK, kept.get(name))))
    return kept


def node_environment(
    inherited: Mapping[str, str], access_key_id: str, secret_access_key: str, s3_url: str, events_url: str
) -> dict[str, str]:
    """Return what every node of a run finds besides its marks."""
    return {
        **child_environment(inherited),
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": secret_access_key,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL_S3": s3_url,
        "AWS_ENDPOINT_URL_EVENTBRIDGE": events_url,
    }
