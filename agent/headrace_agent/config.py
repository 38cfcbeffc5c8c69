"""The node configuration, config.json version 1: all that this machine is told."""

from __future__ import annotations

from dataclasses import dataclass

from headrace_agent.fields import ConfigError, Fields

VERSION = 1


@dataclass(frozen=True)
class Volume:
    """A volume that this node makes (`hydrated_here`, scratch) or mounts."""

    volume_id: str
    kind: str
    array_name: str
    array_uuid: str
    filesystem_uuid: str
    stripe_unit_bytes: int
    members: int
    hydrated_here: bool
    raid_level: int
    slices: tuple[str, ...]


@dataclass(frozen=True)
class SliceRequest:
    """One equal part of this node's disks; the UUID is its identity on every path to it."""

    name: str
    namespace_uuid: str
    array_uuid: str


@dataclass(frozen=True)
class Export:
    """A slice as a namespace of a subsystem, for one audience; `phase` is filling, sealed or always."""

    subsystem_nqn: str
    namespace_id: int
    namespace_uuid: str
    phase: str
    allowed_host_nqns: tuple[str, ...]
    controller_id_min: int
    controller_id_max: int


@dataclass(frozen=True)
class Copy:
    """A slice to be filled with the bytes of another node's, once that one is sealed."""

    namespace_uuid: str
    address: str
    service_port: int
    subsystem_nqn: str


@dataclass(frozen=True)
class Import:
    """A subsystem that this node connects to; `shared_folder` is set only where nodes share a file system."""

    node_id: str
    address: str
    service_port: int
    subsystem_nqn: str
    volume_ids: tuple[str, ...]
    queues: int
    keep_alive_seconds: int
    reconnect_seconds: int
    fast_fail_seconds: int
    loss_seconds: int
    shared_folder: str | None


@dataclass(frozen=True)
class StageTask:
    """What to copy: keys of dataset parts below the run's prefix, and their totals."""

    parts: tuple[str, ...]
    files: int
    bytes: int
    progress_seconds: float
    index: str | None = None
    is_hashed: bool = False


@dataclass(frozen=True)
class TrainTask:
    """What to run: an argument vector that never passes through a shell, and all around it."""

    command: tuple[str, ...]
    variables: dict[str, str]
    code: str | None
    requirements: str | None
    node_rank: int
    node_count: int
    rendezvous_address: str
    accelerators: int
    data_inputs: tuple[str, ...]
    direct_sources: tuple[str, ...]
    index_parts: tuple[str, ...]
    results_bucket: str
    results_prefix: str
    stop_grace_seconds: float
    results_grace_seconds: float
    log_bytes_max: int


@dataclass(frozen=True)
class BucketAccess:
    """How a bucket is reached that is not ours: as a role, or at an endpoint with a secret's keys."""

    bucket: str
    role: str | None
    external_id: str | None
    endpoint: str | None
    credentials: str | None
    signing_region: str | None


@dataclass(frozen=True)
class NodeConfig:
    """Everything for one node of one attempt; a part that does not apply is None or empty."""

    run_id: str
    attempt: int
    node_id: str
    role: str
    host_nqn: str
    address: str
    fabric: str
    soft_roce: bool
    heartbeat_seconds: float
    volumes: tuple[Volume, ...]
    slices: tuple[SliceRequest, ...]
    exports: tuple[Export, ...]
    copies: tuple[Copy, ...]
    imports: tuple[Import, ...]
    stage: StageTask | None
    train: TrainTask | None
    buckets: tuple[BucketAccess, ...] = ()
    """How those are reached that are not ours."""


def parse_config(text: str | bytes) -> NodeConfig:
    """Return the configuration; raises ConfigError for another version or a wrong field."""
    fields = Fields.parse(text, "config.json")
    version = fields.integer("version")
    if version != VERSION:
        raise ConfigError(
            f"config.json has version {version} and this agent knows version {VERSION}; "
            "install the agent that belongs to this control plane"
        )
    stage, train = fields.section("stage"), fields.section("train")
    return NodeConfig(
        run_id=fields.text("run_id"),
        attempt=fields.integer("attempt"),
        node_id=fields.text("node_id"),
        role=fields.text("role"),
        host_nqn=fields.text("host_nqn"),
        address=fields.text("address"),
        fabric=fields.text("fabric"),
        soft_roce=fields.flag("soft_roce"),
        heartbeat_seconds=fields.number("heartbeat_seconds"),
        volumes=tuple(_volume(one) for one in fields.sections("volumes")),
        slices=tuple(_slice(one) for one in fields.sections("slices")),
        exports=tuple(_export(one) for one in fields.sections("exports")),
        copies=tuple(_copy(one) for one in fields.sections("copies")),
        imports=tuple(_import(one) for one in fields.sections("imports")),
        stage=_stage(stage) if stage else None,
        train=_train(train) if train else None,
        buckets=tuple(_bucket(one) for one in fields.sections("buckets")),
    )


def _bucket(fields: Fields) -> BucketAccess:
    return BucketAccess(
        bucket=fields.text("bucket"),
        role=fields.text_or_none("role"),
        external_id=fields.text_or_none("external_id"),
        endpoint=fields.text_or_none("endpoint"),
        credentials=fields.text_or_none("credentials"),
        signing_region=fields.text_or_none("signing_region"),
    )


def _volume(fields: Fields) -> Volume:
    return Volume(
        volume_id=fields.text("volume_id"),
        kind=fields.text("kind"),
        array_name=fields.text("array_name"),
        array_uuid=fields.text("array_uuid"),
        filesystem_uuid=fields.text("filesystem_uuid"),
        stripe_unit_bytes=fields.integer("stripe_unit_bytes"),
        members=fields.integer("members"),
        hydrated_here=fields.flag("hydrated_here"),
        raid_level=fields.integer("raid_level"),
        slices=fields.texts("slices"),
    )


def _slice(fields: Fields) -> SliceRequest:
    return SliceRequest(
        name=fields.text("name"),
        namespace_uuid=fields.text("namespace_uuid"),
        array_uuid=fields.text("array_uuid"),
    )


def _export(fields: Fields) -> Export:
    return Export(
        subsystem_nqn=fields.text("subsystem_nqn"),
        namespace_id=fields.integer("namespace_id"),
        namespace_uuid=fields.text("namespace_uuid"),
        phase=fields.text("phase"),
        allowed_host_nqns=fields.texts("allowed_host_nqns"),
        controller_id_min=fields.integer("controller_id_min"),
        controller_id_max=fields.integer("controller_id_max"),
    )


def _copy(fields: Fields) -> Copy:
    return Copy(
        namespace_uuid=fields.text("namespace_uuid"),
        address=fields.text("address"),
        service_port=fields.integer("service_port"),
        subsystem_nqn=fields.text("subsystem_nqn"),
    )


def _import(fields: Fields) -> Import:
    return Import(
        node_id=fields.text("node_id"),
        address=fields.text("address"),
        service_port=fields.integer("service_port"),
        subsystem_nqn=fields.text("subsystem_nqn"),
        volume_ids=fields.texts("volume_ids"),
        queues=fields.integer("queues"),
        keep_alive_seconds=fields.integer("keep_alive_seconds"),
        reconnect_seconds=fields.integer("reconnect_seconds"),
        fast_fail_seconds=fields.integer("fast_fail_seconds"),
        loss_seconds=fields.integer("loss_seconds"),
        shared_folder=fields.text_or_none("shared_folder"),
    )


def _stage(fields: Fields) -> StageTask:
    return StageTask(
        parts=fields.texts("parts"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        progress_seconds=fields.number("progress_seconds"),
        index=fields.text_or_none("index"),
        is_hashed="is_hashed" in fields.values and fields.flag("is_hashed"),
    )


def _train(fields: Fields) -> TrainTask:
    return TrainTask(
        command=fields.texts("command"),
        variables=fields.text_map("variables"),
        code=fields.text_or_none("code"),
        requirements=fields.text_or_none("requirements"),
        node_rank=fields.integer("node_rank"),
        node_count=fields.integer("node_count"),
        rendezvous_address=fields.text("rendezvous_address"),
        accelerators=fields.integer("accelerators"),
        data_inputs=fields.texts("data_inputs"),
        direct_sources=fields.texts("direct_sources"),
        index_parts=fields.texts("index_parts") if "index_parts" in fields.values else (),
        results_bucket=fields.text("results_bucket"),
        results_prefix=fields.text("results_prefix"),
        stop_grace_seconds=fields.number("stop_grace_seconds"),
        results_grace_seconds=fields.number("results_grace_seconds"),
        log_bytes_max=fields.integer("log_bytes_max"),
    )
