"""The node configuration: all that one machine is told, as one object that only this machine reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headrace.domain.access import BucketAccess
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


class FabricKey(Contract):
    """The key by which a node proves to one storage node who it is (DH-HMAC-CHAP), where both kernels can.

    `is_demanded` when that node is known to admit nobody without.
    """

    address: str
    key: str
    is_demanded: bool


class FabricKeys(Contract):
    """The keys that a node shows to others, kept as its identity is and apart from its configuration."""

    keys: tuple[FabricKey, ...]


NODE_OBJECTS = ("identity.json", "config.json", "fabric.json", "lease.json", "notice.json")
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
    raid_level: Literal[0, 1, 10] = 0
    """1 and 10 only for what one machine reads and writes; a sealed volume's second copy is a second path instead."""
    slices: tuple[str, ...] = ()
    """Namespace UUIDs of the members in stripe order; empty for a volume on the node's own disks alone."""


class SliceConfig(Contract):
    """One part of a storage node's disks, dealt over them in turn; the UUID is its identity on every path."""

    name: str
    namespace_uuid: str
    array_uuid: str
    """Of the array that it is a member of; a disk that holds anything else is not touched."""
    share_ppm: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Its parts per million of the disk, of what is kept at the end; None for an equal part of the rest."""


class ExportConfig(Contract):
    """A slice as a namespace of a subsystem, for one audience.

    `phase` filling: until the slice is sealed; sealed: from then on; always: never sealed. A copy is exported under
    the same names with other controller ids, so that a reader sees two paths to one namespace.
    """

    subsystem_nqn: str
    namespace_id: int
    namespace_uuid: str
    phase: Literal["filling", "sealed", "always"]
    allowed_host_nqns: tuple[str, ...]
    controller_id_min: int = 1
    controller_id_max: int = 32_000


class CopyConfig(Contract):
    """A slice that this node fills with the bytes of another node's, once that one is sealed."""

    namespace_uuid: str
    address: str
    service_port: int
    subsystem_nqn: str


class ImportConfig(Contract):
    """A subsystem that a node connects to; `shared_folder` is set only where nodes share a file system.

    After two keep-alive periods a dead server is noticed, and `fast_fail_seconds` later what waits for it fails;
    `loss_seconds` bounds the attempts to reconnect.
    """

    node_id: str
    address: str
    service_port: int
    subsystem_nqn: str
    volume_ids: tuple[str, ...]
    queues: int
    keep_alive_seconds: int = 5
    reconnect_seconds: int = 2
    fast_fail_seconds: int = 30
    loss_seconds: int = 600
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
    is_hashed: bool = False
    """Whether an ETag that is an MD5 is compared although the connection authenticates the bytes."""


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


class LeftResults(Contract):
    """What a compute node that is gone has left on a scratch volume whose slices are all on this node."""

    node_id: str
    """Of the compute node, as `attempt` and `node_rank` are."""
    attempt: int
    node_rank: int
    volume: VolumeConfig
    subsystem_nqn: str
    """By which the compute node reached it, and which is closed before the volume is mounted here."""
    results_bucket: str
    results_prefix: str


class SalvageConfig(Contract):
    """Results that this storage node saves in place of compute nodes."""

    left: tuple[LeftResults, ...]
    results_grace_seconds: Seconds


class NodeConfig(Contract):
    """Everything for one node of one attempt; a part that does not apply is absent."""

    version: Literal[1] = 1
    run_id: str
    attempt: int
    node_id: str
    role: Role
    host_nqn: str
    address: str
    """Where other nodes reach this one; its network device is the one that serves the fabric."""
    fabric: Literal["tcp", "roce", "none"]
    soft_roce: bool = False
    """Whether RoCE in software will do, which is so only where the job asks for RoCE."""
    heartbeat_seconds: Seconds
    volumes: tuple[VolumeConfig, ...] = ()
    slices: tuple[SliceConfig, ...] = ()
    kept_ppm: Annotated[int, Field(ge=0, le=10**6)] = 0
    """Parts per million at the end of each disk, kept for slices with a share; the same on every storage node."""
    exports: tuple[ExportConfig, ...] = ()
    copies: tuple[CopyConfig, ...] = ()
    imports: tuple[ImportConfig, ...] = ()
    buckets: tuple[BucketAccess, ...] = ()
    """How the job's buckets are reached that are not ours; a role and a secret's name, never a key."""
    stage: StageConfig | None = None
    train: TrainConfig | None = None
    salvage: SalvageConfig | None = None
