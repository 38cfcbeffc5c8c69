"""What config.json says of the data path: volumes, the slices under them, and who is served what by whom."""

from __future__ import annotations

from dataclasses import dataclass

from headrace_agent.fields import Fields


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
    """One part of this node's disks; the UUID is its identity on every path to it."""

    name: str
    namespace_uuid: str
    array_uuid: str
    share_ppm: int | None = None
    """Its parts per million of the disk, of what is kept at the end; None for an equal part of the rest."""


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


def read_volume(fields: Fields) -> Volume:
    """Return a volume; raises ConfigError for a wrong field."""
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


def read_slice(fields: Fields) -> SliceRequest:
    """Return a slice; raises ConfigError for a wrong field."""
    return SliceRequest(
        name=fields.text("name"),
        namespace_uuid=fields.text("namespace_uuid"),
        array_uuid=fields.text("array_uuid"),
        share_ppm=None if fields.values.get("share_ppm") is None else fields.integer("share_ppm"),
    )


def read_export(fields: Fields) -> Export:
    """Return an export; raises ConfigError for a wrong field."""
    return Export(
        subsystem_nqn=fields.text("subsystem_nqn"),
        namespace_id=fields.integer("namespace_id"),
        namespace_uuid=fields.text("namespace_uuid"),
        phase=fields.text("phase"),
        allowed_host_nqns=fields.texts("allowed_host_nqns"),
        controller_id_min=fields.integer("controller_id_min"),
        controller_id_max=fields.integer("controller_id_max"),
    )


def read_copy(fields: Fields) -> Copy:
    """Return a copy; raises ConfigError for a wrong field."""
    return Copy(
        namespace_uuid=fields.text("namespace_uuid"),
        address=fields.text("address"),
        service_port=fields.integer("service_port"),
        subsystem_nqn=fields.text("subsystem_nqn"),
    )


def read_import(fields: Fields) -> Import:
    """Return an import; raises ConfigError for a wrong field."""
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
