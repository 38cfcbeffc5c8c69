"""What the agent says about itself in each heartbeat."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Return this process's resident memory (second field of /proc/self/statm, in pages)."""
    return int(statm.read_text().split()[1]) * PAGE_BYTES


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return the id of this boot of the machine, or `unknown`."""
    try:
        return path.read_text().strip()
    except OSError:
        return "unknown"


def heartbeat(activity: str, outbox_depth: int, troubles: Sequence[str] = ()) -> dict[str, Any]:
    """Return the body of a Telemetry Sampled; `troubles` are those of the data path, named only while there are any."""
    body = {"activity": activity, "agent_resident_bytes": resident_bytes(), "outbox_depth": outbox_depth}
    return body | ({"troubles": list(troubles)} if troubles else {})
