"""The run table on one machine: JSON items in SQLite, changed by conditional writes only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.local.database import Database
from headrace.ports import Json

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, item TEXT NOT NULL,
    UNIQUE (run_id, kind, name)
);
CREATE INDEX IF NOT EXISTS runs_by_age ON items (kind, sequence);
"""
_KEY = "WHERE run_id = ? AND kind = ? AND name = ?"


class LocalRuns:
    """The Runs port; `path` None keeps the table in memory.

    Safe for several threads and several processes at once: each method is one transaction.
    """

    def __init__(self, path: Path | None) -> None:
        self._database = Database(path, SCHEMA)

    def insert(self, run_id: str, kind: str, name: str, item: Mapping[str, Json]) -> bool:
        """Write a new item. Return False, changing nothing, when the key is taken."""
        with self._database.changing() as connection:
            cursor = connection.execute(
                "INSERT OR IGNORE INTO items (run_id, kind, name, item) VALUES (?, ?, ?, ?)",
                (run_id, kind, name, _encode(item)),
            )
            return cursor.rowcount == 1

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Json] | None:
        """Return the item as last written, or None."""
        with self._database.reading() as connection:
            found = connection.execute(f"SELECT item FROM items {_KEY}", (run_id, kind, name)).fetchone()  # noqa: S608
        return None if found is None else json.loads(found[0])

    def update(
        self, run_id: str, kind: str, name: str, changes: Mapping[str, Json], expecting: Mapping[str, Json]
    ) -> bool:
        """Set the fields of `changes` if the item exists and each field of `expecting` has that value."""
        with self._database.changing():
            item = self.read(run_id, kind, name)
            if item is None or any(item.get(field) != _as_stored(value) for field, value in expecting.items()):
                return False
            self._write(run_id, kind, name, {**item, **changes})
            return True

    def delete(self, run_id: str, kind: str, name: str) -> None:
        """Remove the item; an absent one is success."""
        with self._database.changing() as connection:
            connection.execute(f"DELETE FROM items {_KEY}", (run_id, kind, name))  # noqa: S608

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Json], ...]:
        """Return every item of that kind, ordered by name."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT item FROM items WHERE run_id = ? AND kind = ? ORDER BY name", (run_id, kind)
            ).fetchall()
        return tuple(json.loads(text) for (text,) in found)

    def run_ids(self) -> Iterator[str]:
        """Yield the id of every run that has a row (an item of kind `run`), newest first."""
        with self._database.reading() as connection:
            found = connection.execute("SELECT run_id FROM items WHERE kind = 'run' ORDER BY sequence DESC").fetchall()
        return (run_id for (run_id,) in found)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _write(self, run_id: str, kind: str, name: str, item: Mapping[str, Json]) -> None:
        with self._database.reading() as connection:
            connection.execute(f"UPDATE items SET item = ? {_KEY}", (_encode(item), run_id, kind, name))  # noqa: S608


def _encode(item: Mapping[str, Json]) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _as_stored(value: Json) -> Json:
    """Return the value as it reads back, where tuples are lists."""
    return value if value is None or isinstance(value, (str, int)) else json.loads(json.dumps(value))
