"""The plan: what is launched, how the SSDs are laid out, what it costs, how long it takes, and why."""

from __future__ import annotations

from typing import Literal

from headrace.domain.model import Amount, Bytes, Capacity, Contract, Seconds, Usd

StorageKind = Literal["fleet", "local", "direct"]
Role = Literal["storage", "compute"]
Placement = Literal["cluster", "cluster only", "one zone"]
Fabric = Literal["tcp", "roce", "none"]


class FleetPlan(Contract):
    """One homogeneous fleet; `fallback_types` give the same layout and are tried in order when the first is short."""

    role: Role
    instance_type: str
    count: int
    fallback_types: tuple[str, ...] = ()
    arch: Literal["x86_64", "arm64"]
    market: Capacity = "on-demand"
    placement: Placement = "one zone"
    """`cluster`: a cluster placement group, where machines that train together meet over the network, if it has room;
    `cluster only`: nowhere else."""
    usd_per_hour_each: Usd
    nic_bytes_per_s: Bytes
    disk_count: int
    disk_bytes: Bytes
    accelerators_each: int = 0
    reservation: str | None = None


class VolumePlan(Contract):
    """One XFS file system on a stripe; places of members and mirrors count within the fleet that holds the SSDs."""

    volume_id: str
    kind: Literal["dataset", "scratch"]
    shape: Literal["spread", "striped"]
    held_by: Role
    hydrator_node_index: int
    """Of the node that writes it: among those that hold it for a data set, among compute nodes for scratch."""
    member_node_indexes: tuple[int, ...]
    slices_per_member: int
    mirror_node_indexes: tuple[int, ...] = ()
    """Nodes that hold the second copy of a mirrored volume, one per member; empty without a mirror."""
    stripe_unit_bytes: Bytes
    capacity_bytes: Bytes


class DemandPlan(Contract):
    """What the job needs in all, and where each number comes from."""

    read_bytes_per_s: Amount
    read_request_bytes: Bytes = 0
    """Useful bytes of one read that the loader issues."""
    reads_per_s: Amount = 0
    """How many of them it issues in all."""
    capacity_bytes: Amount
    dataset_bytes: Bytes
    dataset_files: int
    checkpoint_bytes: Bytes = 0
    checkpoint_period_s: Seconds = 0
    basis: str


class PhasePlan(Contract):
    """One phase of the run, with what bills while it lasts."""

    name: Literal["storage", "staging", "compute", "training", "ending"]
    eta_s: Seconds
    usd_per_hour: Usd
    because: str


class BindingLimit(Contract):
    """The limit that decides the size, with the numbers behind it."""

    name: str
    offered: float
    needed: float
    unit: str
    because: str


class OptionPlan(Contract):
    """One way to run the job."""

    storage: StorageKind
    fleets: tuple[FleetPlan, ...]
    volumes: tuple[VolumePlan, ...]
    fabric: Fabric
    queues_per_connection: int
    phases: tuple[PhasePlan, ...]
    usd_per_hour: Usd
    usd_low: Usd
    usd_high: Usd
    usd_expected: Usd = 0
    """Average cost with what is spent again when machines are lost; options are ranked by it."""
    chance_of_loss: float = 0
    """Chance that the run loses a machine that it misses."""
    transfer_usd: Usd = 0
    """Part of both that moving data between regions costs."""
    limit: BindingLimit
    next_cheaper: str = ""
    """What the next cheaper option would be, and what it lacks."""
    reasons: tuple[str, ...]


class RegionChoice(Contract):
    """One way to bring data in one region and machines in another together."""

    way: Literal["copy once", "cache lazily", "read across", "move the machines"]
    region: str
    """Where the machines are."""
    is_available: bool = True
    usd_low: Usd | None = None
    """What the whole run costs this way, where it is planned."""
    transfer_usd: Usd = 0
    """Of that, what moving data between regions costs, once."""
    transfer_usd_per_epoch: Usd = 0
    break_even_epochs: float | None = None
    """Epochs from which on copying once is cheaper than this; None where it never is."""
    because: str


class Comparison(Contract):
    """The same demand on a service that a run never chooses, with the machines that train; no cost where it cannot."""

    name: str
    usd_per_hour: Usd | None = None
    usd_low: Usd | None = None
    because: str


class Rejection(Contract):
    """Candidates that were left out for one reason."""

    reason: str
    candidates: int
    example: str


class Plan(Contract):
    """The chosen option, what else would work, and what was rejected."""

    version: Literal[1] = 1
    job_name: str
    region: str
    demand: DemandPlan
    chosen: OptionPlan
    alternatives: tuple[OptionPlan, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    regions: tuple[RegionChoice, ...] = ()
    """Ways to bring data and machines together; empty where they are in one region."""
    comparisons: tuple[Comparison, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Services without a checked price, by name."""
    assumptions: tuple[str, ...] = ()
    catalog_date: str

    def fleet(self, role: Role) -> FleetPlan | None:
        """Return the fleet of that role in the chosen option, or None when the option has none."""
        return next((one for one in self.chosen.fleets if one.role == role), None)

    @property
    def dataset_volumes(self) -> tuple[VolumePlan, ...]:
        """Volumes that staging fills, in the order their index is used in assignments."""
        return tuple(one for one in self.chosen.volumes if one.kind == "dataset")
