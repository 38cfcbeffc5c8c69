"""Remembers which files are staged, so that a staging that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from headrace_agent.dataset import DatasetFile, digest_line

SCHEMA = """
CREATE TABLE IF NOT EXISTS staged (path TEXT PRIMARY KEY, bytes INTEGER, etag TEXT, task TEXT) WITHOUT ROWID;
"""


class StageState:
    """The staged files of one volume, each with the task that wanted it last."""

    def __init__(self, path: Path, task_id: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._task_id = task_id
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(SCHEMA)

    def is_staged(self, wanted: DatasetFile, target: Path) -> bool:
        """Tell whether this very object was staged before and its file is still there in its size."""
        row = self._database.execute("SELECT bytes, etag FROM staged WHERE path = ?", (wanted.path,)).fetchone()
        if row != (wanted.bytes, wanted.etag):
            return False
        try:
            return target.lstat().st_size == wanted.bytes
        except FileNotFoundError:
            return False

    def record(self, files: Iterable[DatasetFile]) -> None:
        """Remember files as staged for this task."""
        rows = [(one.path, one.bytes, one.etag, self._task_id) for one in files]
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def summary(self) -> tuple[int, int, str]:
        """Return files, bytes and digest of what this task staged.

        The digest is the SHA-256 of the sorted lines `path TAB bytes TAB etag`, joined by line feeds; sorting by
        path is the same, since paths hold no control character.
        """
        rows = self._database.execute(
            "SELECT path, bytes, etag FROM staged WHERE task = ? ORDER BY path", (self._task_id,)
        )
        files = total_bytes = 0
        digest = hashlib.sha256()
        for path, size_bytes, etag in rows:
            digest.update((("\n" if files else "") + digest_line(path, size_bytes, etag)).encode())
            files, total_bytes = files + 1, total_bytes + size_bytes
        return files, total_bytes, digest.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._database.close()
