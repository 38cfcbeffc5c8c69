"""What the body of each event holds; numbers are integers, and metrics travel as text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from headrace.domain.model import Bytes, Contract
from headrace.domain.wire import write_json

ShortText = Annotated[str, Field(max_length=1024)]
Count = Annotated[int, Field(ge=0, le=10**15)]


class NodeReady(Contract):
    """The agent is up and has its identity."""

    agent_version: ShortText
    boot_id: ShortText
    rdma_device: ShortText | None = None
    """The device by which it could do RoCE in hardware; absent where it has none."""


class NodeConfigured(Contract):
    """The configuration is in place; what a process node only recorded is listed, at most 40 commands."""

    actions: Count
    not_executed: Annotated[tuple[ShortText, ...], Field(max_length=40)] = ()
    fabric: ShortText | None = None
    """How the node reaches others or is reached, in words; absent where there is no fabric."""
    demands_keys: bool | None = None
    """Whether hosts must prove who they are to be admitted; absent where nothing is exported."""


class DatasetProgress(Contract):
    """How far this node's share of the data set is."""

    files: Count
    bytes: Bytes
    total_files: Count
    total_bytes: Bytes
    rate_bytes_per_s: Count


class DatasetStaged(Contract):
    """The node's share is complete; `digest` is the SHA-256 of its sorted lines `path TAB bytes TAB etag`."""

    files: Count
    bytes: Bytes
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class DatasetFailed(Contract):
    """The node cannot complete its share; at most 20 of the missing paths are named."""

    reason: ShortText
    missing: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()


class JobStarted(Contract):
    """The command runs."""

    pid: Count


class JobProgress(Contract):
    """The last line that the command reported about itself."""

    step: Count | None = None
    total_steps: Count | None = None
    metrics: Annotated[dict[ShortText, ShortText], Field(max_length=20)] = {}
    message: ShortText | None = None


class ResultsProgress(Contract):
    """Results saved and verified so far."""

    files: Count
    bytes: Bytes


class TelemetrySampled(Contract):
    """The heartbeat. `activity` is what the agent is doing."""

    activity: ShortText
    agent_resident_bytes: Bytes
    outbox_depth: Count
    troubles: Annotated[tuple[ShortText, ...], Field(max_length=5)] = ()
    """What the node found wrong with the data path, in words; absent while all is well."""


class JobDone(Contract):
    """The command ended with 0 and its last result is durable; `manifest` is a key below the run's prefix."""

    manifest: ShortText
    files: Count
    bytes: Bytes


class JobFailed(Contract):
    """The command did not end well, or its results could not be saved; what was saved is in `manifest`."""

    reason: ShortText
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: ShortText | None = None
    log_tail: Annotated[str, Field(max_length=4096)] = ""
    manifest: ShortText | None = None
    is_left: bool = False
    """Whether results are on a storage node's disks that this node does not reach any more."""


class ResultsSalvaged(Contract):
    """A storage node has saved what compute nodes left; files and bytes are all that is saved of these, ever."""

    ranks: Annotated[tuple[Count, ...], Field(max_length=1000)] = ()
    """Of the compute nodes that are counted; of another one nobody could tell."""
    files: Count
    bytes: Bytes
    trouble: ShortText | None = None
    """What is not saved, and why; absent when all is."""


class NodeLeaving(Contract):
    """The agent stops, and why."""

    reason: ShortText


BODIES: dict[str, type[Contract]] = {
    "Node Ready": NodeReady,
    "Node Configured": NodeConfigured,
    "Dataset Progress": DatasetProgress,
    "Dataset Staged": DatasetStaged,
    "Dataset Failed": DatasetFailed,
    "Job Started": JobStarted,
    "Job Progress": JobProgress,
    "Results Progress": ResultsProgress,
    "Telemetry Sampled": TelemetrySampled,
    "Job Done": JobDone,
    "Job Failed": JobFailed,
    "Results Salvaged": ResultsSalvaged,
    "Node Leaving": NodeLeaving,
}


def parse_body(detail_type: str, body: dict[str, Any]) -> Contract:
    """Return the body as its model; nothing is converted, so that what was signed is what is meant.

    Raises pydantic.ValidationError when it does not fit, KeyError for an unknown detail-type.
    """
    # As JSON, where an array may be a tuple even when nothing else is converted.
    return BODIES[detail_type].model_validate_json(write_json(body), strict=True)
