"""Executes actions on a machine, or, on a process node, records and prints that they were not executed here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from headrace_agent.action_failed import ActionFailed
from headrace_agent.actions import Action, Await, Link, Mark, Run, Together, Write
from headrace_agent.fabric_keys import with_keys
from headrace_agent.fields import ConfigError
from headrace_agent.kernel_names import NotThere, with_devices, with_names
from headrace_agent.states import BLOCK_BYTES, holds

AGAIN_SECONDS = 0.5
OUTPUT_CHARACTERS = 2000
AT_ONCE_MAX = 64
AFTER_KILL_SECONDS = 1.0


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


@dataclass(frozen=True)
class Doing:
    """What all actions of one execution share: whether to stop, and keys, which are never said."""

    is_stopped: Callable[[], bool] = lambda: False
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)


def execute(actions: Sequence[Action], say: Callable[[str], object], doing: Doing = Doing()) -> int:
    """Do each action whose `unless` does not hold. Return how many; raises ActionFailed at the first fault."""
    done = 0
    for action in actions:
        if action.unless and _has_no_need(action):
            continue
        say(str(action))
        _do(action, doing)
        done += 1
    return done


def _has_no_need(action: Action) -> bool:
    try:
        return action.unless is not None and holds(action.unless)
    except (OSError, NotThere) as error:
        raise ActionFailed(f"{action}: cannot tell whether it is needed: {error}") from error


def _do(action: Action, doing: Doing) -> None:
    if isinstance(action, Run):
        _run(action, doing)
    elif isinstance(action, Together):
        _run_together(action, doing)
    elif isinstance(action, Await):
        _await(action, doing.is_stopped)
    else:
        _change_file(action, doing.keys)


def _change_file(action: Write | Link | Mark, keys: Mapping[str, str]) -> None:
    try:
        if isinstance(action, Write):
            for path in with_names(action.path):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(with_keys(action.text, keys))
        elif isinstance(action, Link):
            Path(action.link).symlink_to(action.target)
        else:
            _mark(action)
    except (OSError, NotThere, ConfigError) as error:
        if not _may_fail(action):
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ActionFailed(f"{action}: {reason}") from error


def _may_fail(action: Write | Link | Mark) -> bool:
    return (isinstance(action, Write) and action.may_fail) or (isinstance(action, Mark) and action.may_be_gone)


def _mark(action: Mark) -> None:
    descriptor = os.open(with_devices(action.device), os.O_WRONLY | os.O_SYNC | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, f"{action.text}\n".encode().ljust(BLOCK_BYTES, b"\0"), 0)
    finally:
        os.close(descriptor)


def _await(action: Await, is_stopped: Callable[[], bool]) -> None:
    end = time.monotonic() + action.seconds
    while not holds(action.until):
        if is_stopped():
            raise ActionFailed(f"told to stop while waiting until {action.until}")
        if time.monotonic() > end and action.may_fail:
            return
        if time.monotonic() > end:
            raise ActionFailed(f"waited {action.seconds} s in vain until {action.until}")
        time.sleep(AGAIN_SECONDS)


def _run_together(action: Together, doing: Doing) -> None:
    wanted = [one for one in action.commands if not (one.unless and holds(one.unless))]
    if not wanted:
        return
    with ThreadPoolExecutor(min(AT_ONCE_MAX, len(wanted))) as threads:
        for result in [threads.submit(_run, one, doing) for one in wanted]:
            result.result()


def _run(action: Run, doing: Doing) -> None:
    for tries_left in reversed(range(action.tries)):
        trouble = _trouble(action, doing)
        if trouble is None or action.may_fail:
            return
        if doing.is_stopped():
            trouble = f"told to stop; {trouble}"
            break
        if tries_left:
            time.sleep(AGAIN_SECONDS)
        if any(one and holds(one) for one in (action.unless, action.spare)):
            return
    raise ActionFailed(f"{action}: {trouble}")


def _trouble(action: Run, doing: Doing) -> str | None:
    """Return what went wrong, or None. One that the kernel holds on to is left behind, since no kill ends it."""
    with tempfile.TemporaryFile() as output:
        try:
            argv = [with_devices(part) for part in action.argv]
            process = _start(argv, with_keys(action.given, doing.keys), output)
        except (OSError, NotThere, ConfigError) as error:
            return str(error)
        returncode = _wait(process, action.seconds, doing.is_stopped)
        if returncode is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(AFTER_KILL_SECONDS)
            return f"not ended after {action.seconds} s"
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()[-OUTPUT_CHARACTERS:]
    return None if returncode == 0 else f"exit code {returncode}: {said}"


def _start(argv: Sequence[str], given: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a command; what it is given fits into a pipe, so that nobody waits for it to be read."""
    stdin = subprocess.PIPE if given else subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=stdin, stdout=output, stderr=output)
    if process.stdin:
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(given.encode())
    return process


def _wait(process: subprocess.Popen[bytes], seconds: float, is_stopped: Callable[[], bool]) -> int | None:
    """Return the exit code, or None when the time is over or somebody says stop."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_stopped():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(1.0, max(0.01, end - time.monotonic())))
    return None
