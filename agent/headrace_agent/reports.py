"""Lets a command say something through the running agent, which alone holds the key that signs events."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace_agent.fields import ConfigError, Fields
from headrace_agent.files import write_atomically
from headrace_agent.reporter import Say
from headrace_agent.text import short

LOG = logging.getLogger(__name__)
NOT_EXECUTED_MAX = 40
LINE_CHARACTERS = 240
LINE_JSON_BYTES = 280
CONFIGURED = "Node Configured"


def configured_body(
    actions: int, not_executed: Sequence[str], fabric: str | None = None, demands_keys: bool | None = None
) -> dict[str, Any]:
    """Return the body of a Node Configured: at most 40 lines, the last one counting those left out."""
    lines = [short(line, LINE_CHARACTERS, LINE_JSON_BYTES) for line in dict.fromkeys(not_executed)]
    if len(lines) > NOT_EXECUTED_MAX:
        left_out = len(lines) - NOT_EXECUTED_MAX + 1
        lines = [*lines[: NOT_EXECUTED_MAX - 1], f"and {left_out} more commands"]
    body: dict[str, Any] = {"actions": actions, "not_executed": lines}
    body |= {"fabric": short(fabric)} if fabric else {}
    return body | ({} if demands_keys is None else {"demands_keys": demands_keys})


def leave_report(folder: Path, body: dict[str, Any]) -> None:
    """Write that the node is configured where the agent of this node finds it."""
    write_atomically(folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}.report", json.dumps(body))


def pass_on(folder: Path, say: Say) -> None:
    """Say and remove every report that was left, in order; one that cannot be read is put aside."""
    for path in sorted(folder.glob("*.report")):
        try:
            fields = Fields.parse(path.read_text(), path.name)
            body = configured_body(
                fields.integer("actions"),
                fields.texts("not_executed"),
                fields.text_or_none("fabric"),
                fields.flag("demands_keys") if "demands_keys" in fields.values else None,
            )
        except (ConfigError, OSError) as error:
            LOG.warning("refused report %s: %s", path.name, error)
            path.rename(path.with_suffix(".refused"))
            continue
        say(CONFIGURED, body)
        path.unlink()
