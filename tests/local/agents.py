"""Tiny stand-ins for the agent, for tests of what starts and ends processes."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from headrace.domain.launch import LaunchRequest
from headrace.local.process_nodes import ProcessNodes

_READY = "import pathlib, signal, subprocess, sys, os, time; pathlib.Path('ready').touch(); "
OBEDIENT = (sys.executable, "-IS", "-c", _READY + "signal.sigwait({signal.SIGTERM})")
STUBBORN = (
    sys.executable,
    "-IS",
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + _READY + "time.sleep(600)",
)
_HIDDEN_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
DOUBLE_FORKING = (
    sys.executable,
    "-IS",
    "-c",
    f"""
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp({sys.executable!r}, [{sys.executable!r}, "-IS", "-c", {_HIDDEN_CHILD!r}])
    os._exit(0)
os.wait()
{_READY} signal.sigwait({{signal.SIGTERM}})
""",
)
"""Leaves a grandchild of init in another session, which ignores SIGTERM."""


def process_nodes(
    root: Path, agent: tuple[str, ...] = OBEDIENT, stop_grace_seconds: float = 5.0, **environment: str
) -> ProcessNodes:
    """Return a driver whose nodes run the stand-in."""
    return ProcessNodes(root, environment, run_bucket="runs-bucket", stop_grace_seconds=stop_grace_seconds, agent=agent)


def launch_request(
    run_id: str,
    count: int = 1,
    types: tuple[str, ...] = ("i4i.large", "i4i.xlarge"),
    token: str = "token-1",  # noqa: S107 - a client token is no password
) -> LaunchRequest:
    """Return a request for storage nodes."""
    return LaunchRequest(
        run_id=run_id,
        role="storage",
        attempt=1,
        count=count,
        instance_types=types,
        market="on-demand",
        region="us-east-1",
        client_token=token,
        deadline_at=datetime(2099, 11, 30, 12, tzinfo=UTC),
    )


def seeded(seed: int) -> Random:
    """Return the source of a test's node ids."""
    return Random(seed)  # noqa: S311 - ids are no secrets
