"""Remembers on disk which result files are saved, through any restart."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        return self._version(file.path) == (file.mtime_ns, file.bytes)

    def is_saved_or_older(self, file: FileState) -> bool:
        """Tell whether the file is saved as it is now or newer, after the machine that wrote it was lost.

        What was not on disk by then is gone from it. Of one instant, the longer version is the newer one: a file
        system may come up with a file's last time and without its last bytes, which it writes down later (XFS does).
        """
        saved = self._version(file.path)
        return saved is not None and saved >= (file.mtime_ns, file.bytes)

    def saved(self, path: str) -> SavedFile | None:
        """Return what is saved of a path."""
        row = self._database.execute("SELECT * FROM saved WHERE path = ?", (path,)).fetchone()
        return SavedFile(*row) if row else None

    def record(self, saved: Iterable[SavedFile]) -> None:
        """Remember files whose objects were verified, durably; earlier versions of them are forgotten."""
        rows = [(one.path, one.key, one.bytes, one.mtime_ns, one.sha256, one.etag) for one in saved]
        self._write("INSERT OR REPLACE INTO saved VALUES (?, ?, ?, ?, ?, ?)", rows)

    def forget(self, paths: Iterable[str]) -> None:
        """Forget files whose objects are about to be written anew, durably."""
        known = "SELECT 1 FROM saved WHERE path = ?"
        rows = [(path,) for path in paths if self._database.execute(known, (path,)).fetchone()]
        self._write("DELETE FROM saved WHERE path = ?", rows)

    def totals(self) -> tuple[int, int]:
        """Return files and bytes saved."""
        row = self._database.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM saved").fetchone()
        return int(row[0]), int(row[1])

    def files(self, below: str = "") -> Iterator[SavedFile]:
        """Yield all saved files by path, or those whose paths begin so."""
        query = "SELECT * FROM saved WHERE path >= ?1 AND substr(path, 1, length(?1)) = ?1 ORDER BY path"
        for row in self._database.execute(query, (below,)):
            yield SavedFile(*row)

    def _version(self, path: str) -> tuple[int, int] | None:
        """Return the time and the bytes of what is saved of a path."""
        row: tuple[int, int] | None = self._database.execute(
            "SELECT mtime_ns, bytes FROM saved WHERE path = ?", (path,)
        ).fetchone()
        return row

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._database.execute("BEGIN")
            self._database.executemany(statement, rows)
            self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._database.close()
