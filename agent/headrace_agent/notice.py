"""Tells the job that it will be ended soon: one line in the file that $HEADRACE_NOTICE names."""

from __future__ import annotations

import json
import os
from pathlib import Path

from headrace_agent.fields import Fields


def notice_line(text: bytes) -> str:
    """Return the line for a notice.json: why the job ends and in how many seconds. Raises ConfigError."""
    fields = Fields.parse(text, "notice.json")
    told = {"notice": fields.text("notice"), "seconds_left": fields.integer("seconds_left")}
    return json.dumps({**told, "because": fields.text("because")})


def append_notice(path: Path, line: str) -> bool:
    """Append the line in one write, so that no reader sees half of it; return False when it is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and line in path.read_text().splitlines():
        return False
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
    return True
