"""Resets a path on which nothing comes back while another path to the same bytes lives, so that reads move there soon.

By itself the kernel takes two keep-alive periods and some seconds (13.8 s at 5 s each, measured) to give up a machine
that is gone; a reset makes it give up at once, and the path comes back by itself when the machine does.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.kernel_names import SYSTEM, connections, read
from headrace_agent.leftovers import OURS

LOG = logging.getLogger(__name__)
STALL_SECONDS = 3.0
"""No SSD and no network that works keeps every request of a connection waiting for so long."""

LOOK_SECONDS = 0.5
READS, WRITES, IN_FLIGHT = 0, 4, 8
"""Fields of a block device's `stat` (kernel Documentation/block/stat)."""


@dataclass(frozen=True)
class PathState:
    """One connection at a moment: the subsystem it leads to, requests that have ended on it, and those that wait."""

    nqn: str
    is_live: bool
    ended: int
    waiting: int


class Stalls:
    """Remembers since when nothing ends on each path though something waits."""

    def __init__(self) -> None:
        self._last: Mapping[str, PathState] = {}
        self._since: dict[str, float] = {}

    def look(self, paths: Mapping[str, PathState], now: float) -> list[str]:
        """Return the paths that stall while another one to the same subsystem does not."""
        waiting = {name for name, one in paths.items() if self._is_waiting(name, one)}
        self._since = {name: self._since.get(name, now) for name in waiting}
        self._last = paths
        stalled = {name for name, since in self._since.items() if now - since >= STALL_SECONDS}
        sound = {one.nqn for name, one in paths.items() if one.is_live and name not in waiting}
        return sorted(name for name in stalled if paths[name].nqn in sound)

    def _is_waiting(self, name: str, now: PathState) -> bool:
        before = self._last.get(name)
        return now.is_live and now.waiting > 0 and before is not None and before.ended == now.ended


def paths(system: Path = SYSTEM) -> dict[str, PathState]:
    """Return every connection to a subsystem of ours by the name of its controller."""
    return {one.name: _path(one) for one in connections(system) if read(one / "subsysnqn").startswith(OURS)}


def _path(folder: Path) -> PathState:
    counts = list(_stats(folder))
    ended = sum(one[READS] + one[WRITES] for one in counts)
    return PathState(
        read(folder / "subsysnqn"), read(folder / "state") == "live", ended, sum(one[IN_FLIGHT] for one in counts)
    )


def _stats(folder: Path) -> Iterator[list[int]]:
    """Yield the counts of each namespace on this connection: with multipath, of its hidden device."""
    for disk in folder.glob("nvme*n*"):
        if text := read(disk / "stat"):
            yield [int(word) for word in text.split()]


class PathWatch:
    """Looks at all paths for as long as the process lives, in a thread of its own."""

    def __init__(self, system: Path = SYSTEM) -> None:
        self._system = system
        self._stalls = Stalls()

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="paths", daemon=True).start()

    def look(self, now: float) -> list[str]:
        """Reset each path that stalls. Return their names."""
        stalled = self._stalls.look(paths(self._system), now)
        for name in stalled:
            LOG.warning(
                "nothing comes back from %s for %g s, and another path lives: resetting it", name, STALL_SECONDS
            )
            # The kernel answers when it has given up the connection, or never.
            threading.Thread(target=self._reset, args=(name,), name=f"reset {name}", daemon=True).start()
        return stalled

    def _reset(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._system / "class/nvme-fabrics/ctl" / name / "reset_controller").write_text("1")

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            try:
                self.look(time.monotonic())
            except (OSError, ValueError):
                LOG.exception("cannot look at the paths")
