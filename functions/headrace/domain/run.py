"""The rows of the run table, and the life that a run and its nodes go through."""

from __future__ import annotations

from typing import Any, Literal

from headrace.domain.model import Bytes, Contract
from headrace.domain.plan import Role

RunStatus = Literal["RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]
PhaseName = Literal[
    "admitted",
    "inspecting",
    "planning",
    "waiting",
    "storage",
    "staging",
    "compute",
    "training",
    "salvaging",
    "collecting",
    "ending",
    "ended",
]
NodeState = Literal["launched", "ready", "configured", "staged", "training", "done", "failed", "released"]


class PhaseMark(Contract):
    """When the run entered a phase."""

    name: PhaseName
    at: str


class RunRow(Contract):
    """One run.

    Big things live in the bucket under `prefix`; the row carries references and small facts.
    """

    run_id: str
    job_name: str
    execution_arn: str
    trigger: str
    status: RunStatus = "RUNNING"
    phases: tuple[PhaseMark, ...] = ()
    started_at: str
    deadline_at: str
    """After this instant every machine of the run powers itself off."""
    launch_at: str | None = None
    """When its first machine is launched, where it waits for a reservation; its hours count from then."""
    tombstone_at: str | None = None
    """Set before decommission; no launch may follow it."""
    staging_token: str | None = None
    training_token: str | None = None
    salvage_token: str | None = None
    staging_role: Role = "storage"
    """Whose nodes fill the data set's volumes."""
    fabric: Literal["tcp", "roce"] | None = None
    """What probing the storage nodes decided for the whole run, where the plan left it open; None until then."""
    job_done_at: str | None = None
    failure: str | None = None
    stop_requested_by: str | None = None
    report_key: str | None = None
    ended_at: str | None = None
    dataset_files: int = 0
    dataset_bytes: Bytes = 0
    results_files: int = 0
    results_bytes: Bytes = 0
    results_checked_at: str | None = None
    """When every result of the manifests had been found in S3; from then on the run is a success, however it ends."""
    budget_usd: float | None = None
    max_seconds: float | None = None
    """How long the training may last; the run as a whole has until `deadline_at`."""
    warned_at: str | None = None
    """When the run was last found to be near one of its limits; `warning` says which."""
    warning: str | None = None
    is_warning_out: bool = False
    """Whether the warning has reached the bus and, while training, the compute nodes."""
    decommission_arn: str | None = None
    """The decommission that was started last by the status rule or the sweep."""
    is_large: bool = False
    """Whether it has so many machines that not every event may look at all of them."""
    looked_at: str | None = None
    """When all machines of a large run were last looked at for what they have come to."""
    money_counted_at: str | None = None
    """When the machines of a large run with a budget were last counted for their leases."""
    money_lasts_until: str | None = None
    """Until when they may stay by that count."""
    remarks: tuple[str, ...] = ()
    """What came otherwise than planned and did not end the run."""
    swept_at: str | None = None
    """When the sweep found nothing left of the ended run, or removed it."""
    owner_process: str | None = None
    """Local runs only: `pid:start-time` of the process that drives the run."""

    @property
    def prefix(self) -> str:
        """Key prefix of all that the run keeps in its bucket."""
        return f"runs/{self.run_id}/"


class NodeRow(Contract):
    """One machine of a run, from launch to release."""

    run_id: str
    node_id: str
    role: Role
    attempt: int
    index: int
    instance_type: str
    zone: str
    address: str
    usd_per_hour: float
    state: NodeState = "launched"
    launched_at: str
    released_at: str | None = None
    last_heard_at: str | None = None
    last_sequence: int = 0
    staged: dict[str, int] = {}
    """Files and bytes staged so far, their totals and the rate, from the last Dataset Progress."""
    job: dict[str, Any] = {}
    """The last Job Progress, Job Done or Job Failed body."""
    activity: str = ""
    """What the agent said it was doing in its last heartbeat: idle, staging, training or salvaging."""
    troubles: tuple[str, ...] = ()
    """What it found wrong with the data path at its last heartbeat."""
    failure: str | None = None
    lease_renewed_at: str | None = None
    """When the control plane last wrote the node's lease."""
    key_deleted_at: str | None = None
    results: dict[str, int] = {}
    """Files and bytes saved so far."""
    salvaged: dict[str, Any] = {}
    """Of a storage node, the Results Salvaged body: what it saved for compute nodes that are gone, and for which."""
    rdma_device: str | None = None
    """By which it can do RoCE in hardware, as it said when it was ready."""
    demands_keys: bool | None = None
    """Whether it admits nobody without a key (DH-HMAC-CHAP); None until it said so, or where it serves nobody."""
    not_executed: tuple[str, ...] = ()
