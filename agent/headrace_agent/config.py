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


@dataclass(frozen=True)
class Export:
    """One namespace that a storage node serves: one slice of one volume."""

    subsystem_nqn: str
    namespace_id: int
    namespace_uuid: str
    volume_id: str
    slice_index: int
    allowed_host_nqns: tuple[str, ...]


@dataclass(frozen=True)
class Import:
    """A subsystem that this node connects to; `shared_folder` is set only where nodes share a file system."""

    node_id: str
    address: str
    service_port: int
    subsystem_nqn: str
    volume_ids: tuple[str, ...]
    queues: int
    shared_folder: str | None


@dataclass(frozen=True)
class StageTask:
    """What to copy: keys of dataset parts below the run's prefix, and their totals."""

    parts: tuple[str, ...]
    files: int
    bytes: int
    progress_seconds: float
    index: str | None = None


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
class NodeConfig:
    """Everything for one node of one attempt; a part that does not apply is None or empty."""

    run_id: str
    attempt: int
    node_id: str
    role: str
    host_nqn: str
    fabric: str
    heartbeat_seconds: float
    volumes: tuple[Volume, ...]
    exports: tuple[Export, ...]
    imports: tuple[Import, ...]
    stage: StageTask | None
    train: TrainTask | None


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
        fabric=fields.text("fabric"),
        heartbeat_seconds=fields.number("heartbeat_seconds"),
        volumes=tuple(_volume(one) for one in fields.sections("volumes")),
        exports=tuple(_export(one) for one in fields.sections("exports")),
        imports=tuple(_import(one) for one in fields.sections("imports")),
        stage=_stage(stage) if stage else None,
        train=_train(train) if train else None,
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
    )


def _export(fields: Fields) -> Export:
    return Export(
        subsystem_nqn=fields.text("subsystem_nqn"),
        namespace_id=fields.integer("namespace_id"),
        namespace_uuid=fields.text("namespace_uuid"),
        volume_id=fields.text("volume_id"),
        slice_index=fields.integer("slice_index"),
        allowed_host_nqns=fields.texts("allowed_host_nqns"),
    )


def _import(fields: Fields) -> Import:
    return Import(
        node_id=fields.text("node_id"),
        address=fields.text("address"),
        service_port=fields.integer("service_port"),
        subsystem_nqn=fields.text("subsystem_nqn"),
        volume_ids=fields.texts("volume_ids"),
        queues=fields.integer("queues"),
        shared_folder=fields.text_or_none("shared_folder"),
    )


def _stage(fields: Fields) -> StageTask:
    return StageTask(
        parts=fields.texts("parts"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        progress_seconds=fields.number("progress_seconds"),
        index=fields.text_or_none("index"),
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
