"""The node: who it is, from node.json, and where everything lives in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace_agent.fields import ConfigError, Fields

NODE_FILE_VARIABLE = "HEADRACE_NODE_FILE"
MACHINE_LEASE_SECONDS, PROCESS_LEASE_SECONDS = 1200.0, 60.0
DEFAULT_NODE_FILE = Path("/var/lib/headrace/node.json")


@dataclass(frozen=True)
class Node:
    """One node, as it was told at launch; `deadline_at` is when it must be gone, whatever happens."""

    run_id: str
    node_id: str
    role: str
    attempt: int
    run_bucket: str
    event_bus: str
    process_node: bool
    deadline_at: datetime
    folder: Path
    idle_lease_seconds: float = MACHINE_LEASE_SECONDS
    """How long it stays without work when the control plane is not heard."""
    node_folder: str = ""
    """Name of its folder in the run bucket when that is not its id: on AWS, `aws:userid` of its credentials."""

    @property
    def prefix(self) -> str:
        """Key prefix of the run in the run bucket."""
        return f"runs/{self.run_id}/"

    @property
    def own_prefix(self) -> str:
        """Key prefix that only this node reads."""
        return f"{self.prefix}nodes/{self.node_folder or self.node_id}/"

    @property
    def volumes(self) -> Path:
        """Folder with one folder, or mount, per volume."""
        return self.folder / "volumes"

    @property
    def data(self) -> Path:
        """What HEADRACE_DATA names for a staged data set."""
        return self.folder / "data" if self.process_node else Path("/data")

    @property
    def state(self) -> Path:
        """Folder of the agent's own files."""
        return self.folder / "state"

    @property
    def configured(self) -> Path:
        """The configuration that the machine was made to follow last; absent when it was undone."""
        return self.state / "configured.json"

    @property
    def idle_heartbeat_seconds(self) -> float:
        """Seconds between heartbeats until a configuration says otherwise."""
        return 1.0 if self.process_node else 15.0


def load_node(environ: Mapping[str, str]) -> Node:
    """Return this node as the file named by HEADRACE_NODE_FILE describes it.

    Raises ConfigError when the file is absent or wrong.
    """
    path = Path(environ.get(NODE_FILE_VARIABLE) or DEFAULT_NODE_FILE)
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(
            f"cannot read the node file {path} ({error.strerror}); it is written when a machine of a run starts. "
            f"Set {NODE_FILE_VARIABLE} to name another one"
        ) from error
    return parse_node(text, str(path))


def parse_node(text: str, where: str) -> Node:
    """Return the node that node.json describes; raises ConfigError."""
    fields = Fields.parse(text, where)
    folder = Path(fields.text("folder"))
    if not folder.is_absolute():
        raise ConfigError(f"{where}: folder must be an absolute path, found {folder}")
    return Node(
        run_id=fields.text("run_id"),
        node_id=fields.text("node_id"),
        role=fields.text("role"),
        attempt=fields.integer("attempt"),
        run_bucket=fields.text("run_bucket"),
        event_bus=fields.text("event_bus"),
        process_node=fields.flag("process_node"),
        deadline_at=_instant(fields, "deadline_at"),
        folder=folder,
        idle_lease_seconds=_idle_lease_seconds(fields),
        node_folder=_node_folder(fields),
    )


def _node_folder(fields: Fields) -> str:
    folder = fields.text("node_folder") if "node_folder" in fields.values else ""
    if "/" in folder or folder in (".", ".."):
        raise ConfigError(f"{fields.where}: node_folder must be one step of a key, found {folder!r}")
    return folder


def _idle_lease_seconds(fields: Fields) -> float:
    if "idle_lease_seconds" in fields.values:
        return fields.number("idle_lease_seconds")
    return PROCESS_LEASE_SECONDS if fields.flag("process_node") else MACHINE_LEASE_SECONDS


def _instant(fields: Fields, name: str) -> datetime:
    text = fields.text(name)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{fields.where}: {name} must be an ISO 8601 instant, found {text!r}") from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
