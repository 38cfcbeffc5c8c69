"""The table of launches and nodes behind the local fleets, in SQLite, so that a crash loses none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.domain.launch import Beside, LaunchRequest
from headrace.local.database import Database
from headrace.ports import LaunchFault, Node, NodeLife

SCHEMA = """
CREATE TABLE IF NOT EXISTS launches (client_token TEXT PRIMARY KEY, launch TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    node_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, life TEXT NOT NULL, ended_at REAL, node TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS nodes_by_run ON nodes (run_id)
"""


@dataclass(frozen=True)
class Launch:
    """What was asked with a client token and what was given for it."""

    request: LaunchRequest
    nodes: tuple[Node, ...]
    faults: tuple[LaunchFault, ...]


class FleetTable:
    """Launches by client token, and nodes with the life they are in; `path` None keeps it in memory."""

    def __init__(self, path: Path | None) -> None:
        self._database = Database(path, SCHEMA)

    def open_launch(self, request: LaunchRequest, draw: Callable[[], Launch]) -> tuple[Launch, bool]:
        """Return the launch of this token and whether it is new; a new one is `draw()`, its nodes pending."""
        with self._database.changing() as connection:
            found = connection.execute(
                "SELECT launch FROM launches WHERE client_token = ?", (request.client_token,)
            ).fetchone()
            if found is not None:
                return _launch(json.loads(found[0])), False
            launch = draw()
            connection.execute("INSERT INTO launches VALUES (?, ?)", (request.client_token, _text(launch)))
            connection.executemany(
                "INSERT INTO nodes (node_id, run_id, life, node) VALUES (?, ?, ?, ?)",
                [(node.node_id, node.run_id, node.life, _text(node)) for node in launch.nodes],
            )
            return launch, True

    def add_faults(self, launch: Launch, faults: tuple[LaunchFault, ...]) -> Launch:
        """Note faults that showed only when the nodes were started."""
        changed = replace(launch, faults=launch.faults + faults)
        with self._database.changing() as connection:
            connection.execute(
                "UPDATE launches SET launch = ? WHERE client_token = ?", (_text(changed), launch.request.client_token)
            )
        return changed

    def move(
        self, node_id: str, from_lives: Sequence[NodeLife], life: NodeLife, ended_at: datetime | None = None
    ) -> bool:
        """Move the node to another life if it is in one of those named; return whether it was."""
        marks = ", ".join("?" * len(from_lives))
        with self._database.changing() as connection:
            cursor = connection.execute(
                f"UPDATE nodes SET life = ?, ended_at = ? WHERE node_id = ? AND life IN ({marks})",  # noqa: S608
                (life, None if ended_at is None else ended_at.timestamp(), node_id, *from_lives),
            )
            return cursor.rowcount == 1

    def find(self, node_id: str) -> Node | None:
        """Return the node, however long ago it ended."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT node, life, ended_at FROM nodes WHERE node_id = ?", (node_id,)
            ).fetchone()
        return None if found is None else _node(*found)

    def nodes(self, run_id: str | None, ended_after: datetime) -> tuple[Node, ...]:
        """Return nodes in launch order, of one run or of all, but for those that ended before that instant."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT node, life, ended_at FROM nodes"
                " WHERE (?1 IS NULL OR run_id = ?1) AND (ended_at IS NULL OR ended_at > ?2) ORDER BY sequence",
                (run_id, ended_after.timestamp()),
            ).fetchall()
        return tuple(_node(*row) for row in found)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _text(record: Launch | Node) -> str:
    return json.dumps(asdict(record), default=lambda instant: instant.astimezone(UTC).isoformat())


def _node(text: str, life: NodeLife, ended_at: float | None) -> Node:
    ended = None if ended_at is None else datetime.fromtimestamp(ended_at, UTC)
    return _node_from({**json.loads(text), "life": life, "ended_at": ended})


def _node_from(fields: dict[str, Any]) -> Node:
    return Node(**{**fields, "launched_at": datetime.fromisoformat(fields["launched_at"])})


def _launch(fields: dict[str, Any]) -> Launch:
    asked = fields["request"]
    request = LaunchRequest(
        **{
            **asked,
            "instance_types": tuple(asked["instance_types"]),
            "deadline_at": datetime.fromisoformat(asked["deadline_at"]),
            "zones": tuple(asked["zones"]),
            "last_zones": tuple(asked["last_zones"]),
            "beside": _beside(asked["beside"]),
        }
    )
    nodes = tuple(_node_from(node) for node in fields["nodes"])
    return Launch(request, nodes, tuple(LaunchFault(**fault) for fault in fields["faults"]))


def _beside(fields: dict[str, Any] | None) -> Beside | None:
    return None if fields is None else Beside(tuple(fields["instance_types"]), fields["reservation"])
