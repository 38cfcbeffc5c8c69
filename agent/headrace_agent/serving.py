"""Whether other machines use what this storage node exports: hosts connected, or disks that were read."""

from __future__ import annotations

from pathlib import Path

from headrace_agent.machine import NVME_DISK

NVME_PORT_HEX = "1144"
"""4420, as /proc/net/tcp writes ports."""
ESTABLISHED = "01"
"""TCP_ESTABLISHED in the kernel's include/net/tcp_states.h."""


class Serving:
    """Remembers how much was read from the disks, so that over RDMA, where no socket shows it, use is seen too."""

    def __init__(self, proc: Path = Path("/proc"), system: Path = Path("/sys")) -> None:
        self._proc = proc
        self._system = system
        self._reads = self._read_count()

    def is_serving(self) -> bool:
        """Tell whether a host is connected, or the local disks were read since the last time this was asked."""
        before, self._reads = self._reads, self._read_count()
        return self._has_hosts() or self._reads != before

    def _has_hosts(self) -> bool:
        rows = [line.split() for name in ("tcp", "tcp6") for line in _lines(self._proc / "net" / name)[1:]]
        return any(row[1].endswith(f":{NVME_PORT_HEX}") and row[3] == ESTABLISHED for row in rows)

    def _read_count(self) -> int:
        """Return the sum of completed reads, the first field of a disk's `stat` (kernel Documentation/block/stat)."""
        stats = sorted((self._system / "block").glob("nvme*"))
        return sum(int(line.split()[0]) for one in stats if NVME_DISK.match(one.name) for line in _lines(one / "stat"))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
