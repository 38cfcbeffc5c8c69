"""The node configuration: all that one machine is told, as one object that only this machine reads."""

from __future__ import annotations

from typing import Literal

from headrace.domain.model import Bytes, Contract, Seconds
from headrace.domain.plan import Role


class Identity(Contract):
    """The node's signing key, 64 hexadecimal characters, kept under the node's own prefix and deleted at the end."""

    run_id: str
    node_id: str
    attempt: int
    hmac_key: str


class Lease(Contract):
    """A sign that the control plane lives: until when the node may stay, and when that was said.

    `deadline_at` can only shorten the deadline that the node was launched with, never extend it. The node measures the
    time between the two instants, so that its own clock may be wrong.
    """

    deadline_at: str
    renewed_at: str


class Notice(Contract):
    """What the job is told before it is ended: how long it still has, and why."""

    notice: Literal["ending"] = "ending"
    seconds_left: int
    because: str


NODE_OBJECTS = ("identity.json", "config.json", "lease.json", "notice.json")
"""All that the control plane writes into a node's folder, deleted when the run has ended."""


class VolumeConfig(Contract):
    """A volume that this node makes and fills (`hydrated_here`), has for itself (scratch), or mounts from others."""

    volume_id: str
    kind: Literal["dataset", "scratch"]
    array_name: str
    array_uuid: str
    filesystem_uuid: str
    stripe_unit_bytes: Bytes
    members: int
    hydrated_here: bool


class ExportConfig(Contract):
    """A namespace that a storage node serves: one subsystem per node, one namespace per slice."""

    subsystem_nqn: str
    namespace_id: int
    namespace_uuid: str
    volume_id: str
    slice_index: int
    allowed_host_nqns: tuple[str, ...]


class ImportConfig(Contract):
    """A subsystem that a compute node connects to; `shared_folder` is set only where nodes share a file system."""

    node_id: str
    address: str
    service_port: int
    subsystem_nqn: str
    volume_ids: tuple[str, ...]
    queues: int
    shared_folder: str | None = None


class StageConfig(Contract):
    """What a node copies: parts of the assignment, each a `DatasetPart`, by volume."""

    parts: tuple[str, ...]
    """Keys below the run's prefix; every file in them belongs to this node."""
    files: int
    bytes: Bytes
    progress_seconds: Seconds
    index: str | None = None
    """Key below the run's prefix under which the node writes what it staged, one JSON object a line."""


class TrainConfig(Contract):
    """What a compute node runs. The command is an argument vector and never passes through a shell."""

    command: tuple[str, ...]
    variables: dict[str, str]
    code: str | None
    """Address `s3://bucket/key` of a .tar.gz, or `s3://bucket/prefix/` of a folder."""
    requirements: str | None
    node_rank: int
    node_count: int
    rendezvous_address: str
    accelerators: int
    data_inputs: tuple[str, ...]
    """Names of the job's inputs; with several, each is a folder below the data directory."""
    direct_sources: tuple[str, ...]
    """Addresses the command reads from S3 itself; empty when the data set was staged."""
    index_parts: tuple[str, ...] = ()
    """Keys below the run's prefix of what makes the index of the data set: JSON lines, or `DatasetPart`s (.json)."""
    results_bucket: str
    results_prefix: str
    stop_grace_seconds: Seconds
    results_grace_seconds: Seconds
    log_bytes_max: Bytes


class NodeConfig(Contract):
    """Everything for one node of one attempt; a part that does not apply is absent."""

    version: Literal[1] = 1
    run_id: str
    attempt: int
    node_id: str
    role: Role
    host_nqn: str
    fabric: Literal["tcp", "roce", "none"]
    heartbeat_seconds: Seconds
    volumes: tuple[VolumeConfig, ...] = ()
    exports: tuple[ExportConfig, ...] = ()
    imports: tuple[ImportConfig, ...] = ()
    stage: StageConfig | None = None
    train: TrainConfig | None = None
