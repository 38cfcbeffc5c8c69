"""How many storage nodes of a type will do, and over how many volumes they hold the data set."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from headrace.domain import calibration
from headrace.domain.connections import connections_fit, pair_bytes_per_s
from headrace.domain.dataset import DatasetSummary
from headrace.domain.demand import Need, capacity_bytes, stored_bytes
from headrace.domain.fleets import ComputeFleet, StorageOffer
from headrace.domain.job import JobSpec

Connects = Callable[[int], bool]
"""Tells whether so many storage nodes and the readers hold all their connections."""
Shape = Literal["spread", "striped"]


class Size(NamedTuple):
    """How large a storage fleet is: its nodes, the least that would do, and its volumes."""

    nodes: int
    least: int
    volumes: int


def fleet_sizes(
    job: JobSpec,
    dataset: DatasetSummary,
    need: Need,
    compute: ComputeFleet,
    offer: StorageOffer,
    most: int = calibration.STORAGE_NODES_MAX,
) -> tuple[Size, ...] | str:
    """Return every size of a fleet of this type that could be the cheapest, smallest first, or why there is none.

    More nodes than the fewest only pay where they let more volumes be filled at once, so that staging is over sooner.
    """
    copies = 2 if job.resilience == "mirror" else 1
    limit = job.storage_nodes or most
    for_rate = math.ceil(need.total.read_bytes_per_s / offer.served_bytes_per_s)
    for_bytes = math.ceil(copies * dataset.bytes * calibration.CAPACITY_MARGIN / offer.machine.ssd_bytes)
    for_flows = math.ceil(need.node_bytes_per_s / pair_bytes_per_s(compute, offer))
    fewest = max(for_rate, for_bytes, for_flows, copies)
    connects = functools.partial(connections_fit, need.node_bytes_per_s, compute, offer)
    sizes = tuple(_sizes(dataset, copies, offer, range(fewest, limit + 1), connects))
    if not sizes:
        able = fewest > limit or any(map(connects, range(fewest, limit + 1)))
        return _no_size(for_rate > limit, limit, able)
    if job.storage_nodes:
        volumes = volumes_that_hold(dataset, copies, offer, job.storage_nodes) if connects(job.storage_nodes) else 0
        return (Size(job.storage_nodes, sizes[0].nodes, volumes),) if volumes else _no_size(False, limit, True)
    return sizes


def _no_size(serves_less: bool, limit: int, connects: bool) -> str:
    if serves_less:
        return f"{limit} nodes serve less than the job reads"
    if not connects:
        return f"the queues of all readers on {limit} nodes take more memory than there is for them"
    return f"{limit} nodes hold less than the data set"


def _sizes(
    dataset: DatasetSummary, copies: int, offer: StorageOffer, counts: range, connects: Connects
) -> Iterator[Size]:
    for nodes in counts:
        if shape_of(dataset, nodes) == "striped":
            yield from _striped_sizes(dataset, copies, offer, range(nodes, counts.stop), connects)
            return
        if _hold(dataset, copies, offer, nodes, nodes) and connects(nodes):
            yield Size(nodes, nodes, nodes)
            return


def _striped_sizes(
    dataset: DatasetSummary, copies: int, offer: StorageOffer, counts: range, connects: Connects
) -> Iterator[Size]:
    """Yield the fewest nodes for each number of volumes that is not to be had with fewer."""
    least = most = 0
    for volumes in range(1, min(dataset.files, calibration.STRIPED_VOLUMES_MAX) + 1):
        if volumes <= most:
            continue
        for_bytes = -(-copies * _fullest_volume_bytes(dataset, volumes) * volumes // offer.machine.ssd_bytes)
        able = range(max(counts.start, volumes, for_bytes), counts.stop)
        nodes = next((one for one in able if connects(one)), 0)
        held = volumes_that_hold(dataset, copies, offer, nodes) if nodes else 0
        if held > most:
            least, most = least or nodes, held
            yield Size(nodes, least, held)


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
    """Tell whether so many equal volumes hold the data set however its files fall."""
    return copies * _fullest_volume_bytes(dataset, volumes) <= offer.machine.ssd_bytes * nodes // volumes


def fullest_node_bytes(dataset: DatasetSummary, copies: int, nodes: int, volumes: int) -> int:
    """Return what each node must have of so many equal volumes over all nodes, however the files fall."""
    return -(-copies * _fullest_volume_bytes(dataset, volumes) * volumes // nodes)


def _fullest_volume_bytes(dataset: DatasetSummary, volumes: int) -> int:
    return _fullest_bytes(dataset.bytes, dataset.files, dataset.largest_bytes, volumes)


@functools.lru_cache(maxsize=1024)
def _fullest_bytes(data_bytes: int, files: int, largest_bytes: int, volumes: int) -> int:
    """Return what the fullest of so many volumes must have.

    Largest-first assignment loads no volume beyond the mean and the largest file less its own mean (Graham 1969).
    """
    total, largest = stored_bytes(data_bytes, files), stored_bytes(largest_bytes, 1)
    fullest = math.ceil((total + largest * (volumes - 1)) / volumes)
    return capacity_bytes(fullest, 0, 1)
