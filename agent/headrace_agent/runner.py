"""Executes actions on a machine, or, on a process node, records and prints that they were not executed here."""

from __future__ import annotations

import glob
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from headrace_agent.actions import Action, Link, Run, Unless, Write
from headrace_agent.mounts import is_mounted

AGAIN_SECONDS = 0.5
COMMAND_SECONDS = 300
NVME_CONTROLLERS = "/sys/class/nvme-fabrics/ctl/nvme*/subsysnqn"


class ActionFailed(Exception):
    """A command or a write failed; the text names it and holds what it said."""


def record(actions: Iterable[Action], folder: Path, say: Callable[[str], object]) -> None:
    """Write each action that is not there yet to `not-executed.jsonl`, and say it."""
    path = folder / "not-executed.jsonl"
    known = set(path.read_text().splitlines()) if path.exists() else set()
    with path.open("a") as stream:
        for action in actions:
            say(f"not executed here: {action}")
            line = json.dumps({"command": str(action)})
            if line not in known:
                known.add(line)
                stream.write(f"{line}\n")


def execute(actions: Sequence[Action], say: Callable[[str], object]) -> int:
    """Do each action whose `unless` does not hold. Return how many; raises ActionFailed at the first fault."""
    done = 0
    for action in actions:
        if action.unless and holds(action.unless):
            continue
        say(str(action))
        _do(action)
        done += 1
    return done


def holds(unless: Unless) -> bool:
    """Tell whether the machine is in that state already."""
    if unless.kind == "mounted":
        return is_mounted(Path(unless.value))
    if unless.kind == "connected":
        return any(_text(path) == unless.value for path in glob.glob(NVME_CONTROLLERS))  # noqa: PTH207 - absolute
    if unless.kind == "enabled":
        return _text(unless.value) == "1"
    if unless.kind == "formatted":
        device, _, uuid = unless.value.partition("=")
        return _file_system_uuid(device) == uuid
    return bool(glob.glob(unless.value))  # noqa: PTH207 - absolute


def _do(action: Action) -> None:
    if isinstance(action, Run):
        _run(action)
        return
    try:
        if isinstance(action, Write):
            Path(action.path).parent.mkdir(parents=True, exist_ok=True)
            Path(action.path).write_text(action.text)
        elif isinstance(action, Link):
            Path(action.link).symlink_to(action.target)
    except OSError as error:
        raise ActionFailed(f"{action}: {error.strerror}") from error


def _run(action: Run) -> None:
    for tries_left in reversed(range(action.tries)):
        trouble = _trouble(action.argv)
        if trouble is None or action.may_fail:
            return
        if tries_left:
            time.sleep(AGAIN_SECONDS)
    raise ActionFailed(f"{action}: {trouble}")


def _trouble(argv: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _file_system_uuid(device: str) -> str:
    asked = ("blkid", "-p", "-o", "value", "-s", "UUID", device)
    return subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
