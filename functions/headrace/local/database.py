"""One SQLite file that threads and processes of one machine change together."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

BUSY_SECONDS = 30.0


class Database:
    """A connection shared by the threads of this process; other processes open the same file.

    `path` None keeps everything in memory, for this process alone. The file is in write-ahead mode, so readers never
    wait for writers, and a process killed at any instant leaves it whole.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        with self.changing() as connection:
            for statement in filter(str.strip, schema.split(";")):
                connection.execute(statement)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock of the whole file; commit at the end, undo everything on an exception."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one query."""
        with self._lock:
            yield self._connection

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
