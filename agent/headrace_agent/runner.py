"""Executes actions on a machine, or, on a process node, records and prints that they were not executed here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace_agent.actions import Action, Await, Link, Mark, Run, Together, Write
from headrace_agent.kernel_names import NotThere, with_devices, with_names
from headrace_agent.states import BLOCK_BYTES, holds

AGAIN_SECONDS = 0.5
OUTPUT_CHARACTERS = 2000
AT_ONCE_MAX = 64
AFTER_KILL_SECONDS = 1.0


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


def execute(
    actions: Sequence[Action], say: Callable[[str], object], is_stopped: Callable[[], bool] = lambda: False
) -> int:
    """Do each action whose `unless` does not hold. Return how many; raises ActionFailed at the first fault."""
    done = 0
    for action in actions:
        if action.unless and _has_no_need(action):
            continue
        say(str(action))
        _do(action, is_stopped)
        done += 1
    return done


def _has_no_need(action: Action) -> bool:
    try:
        return action.unless is not None and holds(action.unless)
    except (OSError, NotThere) as error:
        raise ActionFailed(f"{action}: cannot tell whether it is needed: {error}") from error


def _do(action: Action, is_stopped: Callable[[], bool]) -> None:
    if isinstance(action, Run):
        _run(action, is_stopped)
    elif isinstance(action, Together):
        _run_together(action, is_stopped)
    elif isinstance(action, Await):
        _await(action, is_stopped)
    else:
        _change_file(action)


def _change_file(action: Write | Link | Mark) -> None:
    try:
        if isinstance(action, Write):
            for path in with_names(action.path):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(action.text)
        elif isinstance(action, Link):
            Path(action.link).symlink_to(action.target)
        else:
            _mark(action)
    except (OSError, NotThere) as error:
        if not (isinstance(action, Write) and action.may_fail):
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ActionFailed(f"{action}: {reason}") from error


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
        if time.monotonic() > end:
            raise ActionFailed(f"waited {action.seconds} s in vain until {action.until}")
        time.sleep(AGAIN_SECONDS)


def _run_together(action: Together, is_stopped: Callable[[], bool]) -> None:
    wanted = [one for one in action.commands if not (one.unless and holds(one.unless))]
    if not wanted:
        return
    with ThreadPoolExecutor(min(AT_ONCE_MAX, len(wanted))) as threads:
        for result in [threads.submit(_run, one, is_stopped) for one in wanted]:
            result.result()


def _run(action: Run, is_stopped: Callable[[], bool]) -> None:
    for tries_left in reversed(range(action.tries)):
        trouble = _trouble(action, is_stopped)
        if trouble is None or action.may_fail:
            return
        if is_stopped():
            trouble = f"told to stop; {trouble}"
            break
        if tries_left:
            time.sleep(AGAIN_SECONDS)
        if any(one and holds(one) for one in (action.unless, action.spare)):
            return
    raise ActionFailed(f"{action}: {trouble}")


def _trouble(action: Run, is_stopped: Callable[[], bool]) -> str | None:
    """Return what went wrong, or None. One that the kernel holds on to is left behind, since no kill ends it."""
    with tempfile.TemporaryFile() as output:
        try:
            argv = [with_devices(part) for part in action.argv]
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except (OSError, NotThere) as error:
            return str(error)
        returncode = _wait(process, action.seconds, is_stopped)
        if returncode is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(AFTER_KILL_SECONDS)
            return f"not ended after {action.seconds} s"
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()[-OUTPUT_CHARACTERS:]
    return None if returncode == 0 else f"exit code {returncode}: {said}"


def _wait(process: subprocess.Popen[bytes], seconds: float, is_stopped: Callable[[], bool]) -> int | None:
    """Return the exit code, or None when the time is over or somebody says stop."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_stopped():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(1.0, max(0.01, end - time.monotonic())))
    return None
