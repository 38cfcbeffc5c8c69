"""Remembers on disk which result files are saved, through any restart."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.result_files import FileState

SCHEMA = """
CREATE TABLE IF NOT EXISTS saved
(path TEXT PRIMARY KEY, key TEXT, bytes INTEGER, mtime_ns INTEGER, sha256 TEXT, etag TEXT) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class SavedFile:
    """One file as it is in the results bucket, verified."""

    path: str
    key: str
    bytes: int
    mtime_ns: int
    sha256: str
    etag: str


class ResultsJournal:
    """The saved files of one results prefix; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(SCHEMA)

    def is_saved(self, file: FileState) -> bool:
        """Tell whether the file is saved as it is now."""
        row = self._database.execute("SELECT bytes, mtime_ns FROM saved WHERE path = ?", (file.path,)).fetchone()
        return bool(row == (file.bytes, file.mtime_ns))

    def record(self, saved: SavedFile) -> None:
        """Remember a file whose object was verified; an earlier version of it is forgotten."""
        self._database.execute(
            "INSERT OR REPLACE INTO saved VALUES (?, ?, ?, ?, ?, ?)",
            (saved.path, saved.key, saved.bytes, saved.mtime_ns, saved.sha256, saved.etag),
        )

    def forget(self, path: str) -> None:
        """Forget a file whose object is being written anew."""
        self._database.execute("DELETE FROM saved WHERE path = ?", (path,))

    def totals(self) -> tuple[int, int]:
        """Return files and bytes saved."""
        row = self._database.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM saved").fetchone()
        return int(row[0]), int(row[1])

    def files(self) -> Iterator[SavedFile]:
        """Yield all saved files by path."""
        for row in self._database.execute("SELECT * FROM saved ORDER BY path"):
            yield SavedFile(*row)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
