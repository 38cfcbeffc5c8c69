"""What config.json tells the agent to do: to stage, to train, or to salvage what others left."""

from __future__ import annotations

from dataclasses import dataclass

from headrace_agent.data_path import Volume, read_volume
from headrace_agent.fields import Fields


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
class LeftResults:
    """What a compute node that is gone left on a scratch volume; all its slices are this machine's.

    `node_id`, `attempt` and `node_rank` are the compute node's. It reached the volume by `subsystem_nqn`.
    """

    node_id: str
    attempt: int
    node_rank: int
    volume: Volume
    subsystem_nqn: str
    results_bucket: str
    results_prefix: str


@dataclass(frozen=True)
class SalvageTask:
    """What to save in place of compute nodes, each within the grace."""

    left: tuple[LeftResults, ...]
    results_grace_seconds: float


def read_stage(fields: Fields) -> StageTask:
    """Return what to stage; raises ConfigError for a wrong field."""
    return StageTask(
        parts=fields.texts("parts"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        progress_seconds=fields.number("progress_seconds"),
        index=fields.text_or_none("index"),
        is_hashed="is_hashed" in fields.values and fields.flag("is_hashed"),
    )


def read_train(fields: Fields) -> TrainTask:
    """Return what to run; raises ConfigError for a wrong field."""
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


def read_salvage(fields: Fields) -> SalvageTask:
    """Return what to salvage; raises ConfigError for a wrong field."""
    left = tuple(_left(one) for one in fields.sections("left"))
    return SalvageTask(left, fields.number("results_grace_seconds"))


def _left(fields: Fields) -> LeftResults:
    return LeftResults(
        node_id=fields.text("node_id"),
        attempt=fields.integer("attempt"),
        node_rank=fields.integer("node_rank"),
        volume=read_volume(fields.needed_section("volume")),
        subsystem_nqn=fields.text("subsystem_nqn"),
        results_bucket=fields.text("results_bucket"),
        results_prefix=fields.text("results_prefix"),
    )
