"""How many storage nodes of a type will do, and over how many volumes they hold the data set."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from headrace.domain import calibration
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import Need, capacity_bytes, stored_bytes
from headrace.domain.fleets import ComputeFleet, StorageOffer
from headrace.domain.job import JobSpec

Shape = Literal["spread", "striped"]


class Size(NamedTuple):
    """How large a storage fleet is: its nodes, the least that would do, and its volumes."""

    nodes: int
    least: int
    volumes: int


def smallest_fleet(
    job: JobSpec, dataset: DatasetSummary, need: Need, compute: ComputeFleet, offer: StorageOffer
) -> Size | str:
    """Return the size of the smallest fleet of this type that will do, or why there is none."""
    copies = 2 if job.resilience == "mirror" else 1
    limit = job.storage_nodes or calibration.STORAGE_NODES_MAX
    for_rate = math.ceil(need.total.read_bytes_per_s / offer.served_bytes_per_s)
    for_bytes = math.ceil(copies * dataset.bytes * calibration.CAPACITY_MARGIN / offer.machine.ssd_bytes)
    for_flows = math.ceil(need.node_bytes_per_s / pair_bytes_per_s(compute, offer))
    for least in range(max(for_rate, for_bytes, for_flows, copies), limit + 1):
        if volumes_that_hold(dataset, copies, offer, least):
            nodes = job.storage_nodes or least
            volumes = volumes_that_hold(dataset, copies, offer, nodes)
            return Size(nodes, least, volumes) if volumes else _too_small(limit)
    return f"{limit} nodes serve less than the job reads" if for_rate > limit else _too_small(limit)


def flow_bytes_per_s(compute: ComputeFleet, offer: StorageOffer) -> int:
    """Return what one connection between a storage and a compute node carries."""
    if offer.machine.ena_express and compute.machine.ena_express:
        return calibration.ENA_EXPRESS_FLOW_BYTES_PER_S
    return calibration.FLOW_BYTES_PER_S


def pair_bytes_per_s(compute: ComputeFleet, offer: StorageOffer) -> int:
    """Return what all connections between one storage and one compute node carry: one queue and flow per vCPU."""
    return min(compute.machine.vcpus, offer.machine.vcpus) * flow_bytes_per_s(compute, offer)


def _too_small(limit: int) -> str:
    return f"{limit} nodes hold less than the data set"


def shape_of(dataset: DatasetSummary, nodes: int) -> Shape:
    """Return `striped` when one file alone exceeds a node's fair share, so that its readers would queue at one node."""
    is_huge = dataset.largest_bytes >= calibration.STRIPED_FROM_BYTES
    return "striped" if is_huge and nodes > 1 and dataset.largest_bytes * nodes > dataset.bytes else "spread"


def volumes_that_hold(dataset: DatasetSummary, copies: int, offer: StorageOffer, nodes: int) -> int:
    """Return over how many volumes the data set is best divided; 0 when these nodes do not hold it.

    Spread volumes are one per node. Striped ones are as many as can be filled at once and hold their files.
    """
    if shape_of(dataset, nodes) == "spread":
        return nodes if _hold(dataset, copies, offer, nodes, nodes) else 0
    most = max(1, min(nodes, dataset.files, calibration.STRIPED_VOLUMES_MAX))
    return next((count for count in range(most, 0, -1) if _hold(dataset, copies, offer, nodes, count)), 0)


def _hold(dataset: DatasetSummary, copies: int, offer: StorageOffer, nodes: int, volumes: int) -> bool:
    """Tell whether so many equal volumes hold the data set however its files fall.

    Largest-first assignment loads no volume beyond the mean and the largest file less its own mean (Graham 1969).
    """
    total, largest = stored_bytes(dataset.bytes, dataset.files), stored_bytes(dataset.largest_bytes, 1)
    fullest = math.ceil((total + largest * (volumes - 1)) / volumes)
    needed = capacity_bytes(fullest, 0, 1)
    return copies * needed <= offer.machine.ssd_bytes * nodes // volumes
