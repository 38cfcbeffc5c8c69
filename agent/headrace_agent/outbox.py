"""Keeps events on disk until the bus has taken them, through any crash."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

DROPPED_FIRST = ("Telemetry Sampled", "Dataset Progress", "Job Progress", "Results Progress")
"""Events of which only the newest counts, in the order in which they are given up; all others are never dropped."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS event (sequence INTEGER PRIMARY KEY, detail_type TEXT, detail TEXT, bytes INTEGER);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER);
INSERT OR IGNORE INTO counter VALUES ('sequence', 0);
"""


@dataclass(frozen=True)
class StoredEvent:
    """One event that waits; `detail` is its JSON text, signed."""

    sequence: int
    detail_type: str
    detail: str


class Outbox:
    """A queue on disk that numbers events 1, 2, 3 ... and is bounded in count and bytes.

    When it is full the oldest telemetry goes first, then the oldest progress. Safe to use from several threads.
    """

    def __init__(self, path: Path, count_max: int = 5_000, bytes_max: int = 16 * 1024 * 1024) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.count_max = count_max
        self.bytes_max = bytes_max
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(SCHEMA)

    def append(self, detail_type: str, seal: Callable[[int], str]) -> int:
        """Store the event that `seal` makes for the sequence number it is given. Return that number."""
        with self._lock, self._transaction():
            sequence = self._next_sequence()
            detail = seal(sequence)
            self._database.execute(
                "INSERT INTO event VALUES (?, ?, ?, ?)", (sequence, detail_type, detail, len(detail.encode()))
            )
            self._shrink()
        return sequence

    def oldest(self, limit: int) -> tuple[StoredEvent, ...]:
        """Return up to `limit` waiting events, oldest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT sequence, detail_type, detail FROM event ORDER BY sequence LIMIT ?", (limit,)
            ).fetchall()
        return tuple(StoredEvent(*row) for row in rows)

    def remove(self, sequences: Iterable[int]) -> None:
        """Forget events that the bus has taken."""
        with self._lock, self._transaction():
            self._database.executemany("DELETE FROM event WHERE sequence = ?", [(one,) for one in sequences])

    def depth(self) -> int:
        """Return how many events wait."""
        with self._lock:
            return self._size()[0]

    def close(self) -> None:
        """Close the file; nothing is lost by not calling this."""
        with self._lock:
            self._database.close()

    def _transaction(self) -> _Transaction:
        return _Transaction(self._database)

    def _next_sequence(self) -> int:
        self._database.execute("UPDATE counter SET value = value + 1 WHERE name = 'sequence'")
        return int(self._database.execute("SELECT value FROM counter WHERE name = 'sequence'").fetchone()[0])

    def _size(self) -> tuple[int, int]:
        count, size_bytes = self._database.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM event").fetchone()
        return int(count), int(size_bytes)

    def _shrink(self) -> None:
        while self._is_full():
            if not any(self._drop_oldest(detail_type) for detail_type in DROPPED_FIRST):
                return

    def _is_full(self) -> bool:
        count, size_bytes = self._size()
        return count > self.count_max or size_bytes > self.bytes_max

    def _drop_oldest(self, detail_type: str) -> bool:
        dropped = self._database.execute(
            "DELETE FROM event WHERE sequence = (SELECT min(sequence) FROM event WHERE detail_type = ?)", (detail_type,)
        )
        return dropped.rowcount > 0


class _Transaction:
    """All or nothing, durable when the block ends."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._database.execute("ROLLBACK" if kind else "COMMIT")
