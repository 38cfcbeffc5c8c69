"""Reads the logs of a run's machines from its bucket, whole or as they grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from headrace.client.places import bucket_folder
from headrace.local.settings import RUN_BUCKET


def log_files(home: Path, run_id: str) -> dict[str, Path]:
    """Return the log file of each machine that has one, by node id."""
    folder = bucket_folder(home, RUN_BUCKET) / "runs" / run_id / "logs"
    return {path.stem: path for path in sorted(folder.glob("*.log"))} if folder.is_dir() else {}


@dataclass
class LogTail:
    """Remembers how far each log was read; logs are replaced as a whole while they grow.

    With `node_id`, only machines whose id begins so are read.
    """

    home: Path
    run_id: str
    node_id: str | None = None
    _read: dict[str, bytes] = field(default_factory=dict)

    def new_text(self, *, is_last: bool) -> tuple[tuple[str, str], ...]:
        """Return the lines that each log, by node id, has gained since the last look.

        A line without its end is kept for later, unless this is the last look.
        """
        gained = []
        for node_id, path in log_files(self.home, self.run_id).items():
            if not node_id.startswith(self.node_id or ""):
                continue
            body = _whole_lines(_body(path), is_last=is_last)
            before = self._read.get(node_id, b"")
            fresh = body[len(before) :] if body.startswith(before) else body
            if fresh:
                self._read[node_id] = body
                gained.append((node_id, fresh.decode("utf-8", "replace")))
        return tuple(gained)


def _body(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _whole_lines(body: bytes, *, is_last: bool) -> bytes:
    return body if is_last else body[: body.rfind(b"\n") + 1]
