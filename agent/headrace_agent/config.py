"""The node configuration, config.json version 1: all that this machine is told."""

from __future__ import annotations

from dataclasses import dataclass

from headrace_agent.data_path import (
    Copy,
    Export,
    Import,
    SliceRequest,
    Volume,
    read_copy,
    read_export,
    read_import,
    read_slice,
    read_volume,
)
from headrace_agent.fields import ConfigError, Fields
from headrace_agent.tasks import (
    LeftResults,
    SalvageTask,
    StageTask,
    TrainTask,
    read_salvage,
    read_stage,
    read_train,
)

__all__ = [
    "BucketAccess",
    "Copy",
    "Export",
    "Import",
    "LeftResults",
    "NodeConfig",
    "SalvageTask",
    "SliceRequest",
    "StageTask",
    "TrainTask",
    "Volume",
    "parse_config",
]
VERSION = 1


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
    kept_ppm: int = 0
    """Parts per million at the end of each disk, kept for slices with a share."""
    salvage: SalvageTask | None = None


def parse_config(text: str | bytes) -> NodeConfig:
    """Return the configuration; raises ConfigError for another version or a wrong field."""
    fields = Fields.parse(text, "config.json")
    version = fields.integer("version")
    if version != VERSION:
        raise ConfigError(
            f"config.json has version {version} and this agent knows version {VERSION}; "
            "install the agent that belongs to this control plane"
        )
    stage, train, salvage = fields.section("stage"), fields.section("train"), fields.section("salvage")
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
        volumes=tuple(read_volume(one) for one in fields.sections("volumes")),
        slices=tuple(read_slice(one) for one in fields.sections("slices")),
        exports=tuple(read_export(one) for one in fields.sections("exports")),
        copies=tuple(read_copy(one) for one in fields.sections("copies")),
        imports=tuple(read_import(one) for one in fields.sections("imports")),
        stage=read_stage(stage) if stage else None,
        train=read_train(train) if train else None,
        buckets=tuple(_bucket(one) for one in fields.sections("buckets")),
        kept_ppm=fields.integer("kept_ppm") if "kept_ppm" in fields.values else 0,
        salvage=read_salvage(salvage) if salvage else None,
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
