"""Remembers which files, and which spans of large ones, are staged, so that a staging that was stopped goes on."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from headrace_agent.dataset import DatasetFile, digest_line, index_line

SCHEMA = """
CREATE TABLE IF NOT EXISTS staged
(path TEXT PRIMARY KEY, bytes INTEGER, etag TEXT, version TEXT, source TEXT, task TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spans (part TEXT, start INTEGER, PRIMARY KEY (part, start)) WITHOUT ROWID;
"""


class StagedFile(NamedTuple):
    """A file that is in place, and the version id that its bytes had, empty where the bucket keeps none."""

    file: DatasetFile
    version: str


class StagedSpan(NamedTuple):
    """A span that is written into the file `part`, which will become a staged file."""

    part: str
    start: int


class StageState:
    """The staged files of one volume, each with the task that wanted it last; for several threads."""

    def __init__(self, path: Path, task_id: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._task_id = task_id
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(SCHEMA)
        self._is_empty = self._database.execute("SELECT 1 FROM staged LIMIT 1").fetchone() is None

    def staged_version(self, wanted: DatasetFile, target: Path) -> str | None:
        """Return the version id of this very object if it was staged before this start and its file is still there.

        None means that it is to be copied; a file of another size is not there.
        """
        if self._is_empty:
            return None
        with self._lock:
            row = self._database.execute(
                "SELECT bytes, etag, version FROM staged WHERE path = ?", (wanted.path,)
            ).fetchone()
        if row is None or row[:2] != (wanted.bytes, wanted.etag):
            return None
        try:
            return str(row[2]) if target.lstat().st_size == wanted.bytes else None
        except FileNotFoundError:
            return None

    def spans(self, part: str) -> frozenset[int]:
        """Return where the spans begin that are written into the part."""
        with self._lock:
            rows = self._database.execute("SELECT start FROM spans WHERE part = ?", (part,)).fetchall()
        return frozenset(start for (start,) in rows)

    def parts(self) -> frozenset[str]:
        """Return the names of all parts that have spans and are not files yet."""
        with self._lock:
            return frozenset(part for (part,) in self._database.execute("SELECT DISTINCT part FROM spans"))

    def forget_spans(self, part: str | None = None) -> None:
        """Forget the spans of a part that is not there any more, or of all of them."""
        with self._lock:
            self._database.execute("DELETE FROM spans WHERE part = ?1 OR ?1 IS NULL", (part,))

    def record(self, files: Iterable[StagedFile], spans: Iterable[StagedSpan] = ()) -> None:
        """Remember files as staged for this task, and spans."""
        rows = [(one.path, one.bytes, one.etag, version, str(one.source), self._task_id) for one, version in files]
        with self._lock:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._database.executemany("INSERT OR REPLACE INTO spans VALUES (?, ?)", spans)
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

    def index_lines(self) -> Iterator[str]:
        """Yield a JSON line for each file that this task staged, by path."""
        query = "SELECT path, bytes, etag, version, source FROM staged WHERE task = ? ORDER BY path"
        for path, size_bytes, etag, version, source in self._database.execute(query, (self._task_id,)):
            yield index_line(path, size_bytes, etag, version, source)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
