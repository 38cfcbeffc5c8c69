"""Connections over the fabric: what one flow carries, how many queues there are, and what memory they take."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.domain import calibration
from headrace.domain.fleets import ComputeFleet, StorageOffer


class QueueBudget(NamedTuple):
    """The queues, admin queues included, that one machine holds at the most and is to hold."""

    whose: str
    offered: int
    needed: int


def flow_bytes_per_s(compute: ComputeFleet, offer: StorageOffer) -> int:
    """Return what one connection between a storage and a compute node carries."""
    if offer.machine.ena_express and compute.machine.ena_express:
        return calibration.ENA_EXPRESS_FLOW_BYTES_PER_S
    return calibration.FLOW_BYTES_PER_S


def pair_bytes_per_s(compute: ComputeFleet, offer: StorageOffer) -> int:
    """Return what all connections between one storage and one compute node carry: one queue and flow per vCPU."""
    return _most_queues(compute, offer) * flow_bytes_per_s(compute, offer)


def queues(node_bytes_per_s: int, compute: ComputeFleet, offer: StorageOffer, nodes: int) -> int:
    """Return the I/O queues, one flow each, by which a reader can take several times its even share from one node.

    Never more than fill the slower NIC, nor than either side has vCPUs.
    """
    share = node_bytes_per_s / nodes
    slower_nic = min(offer.machine.nic_bytes_per_s, compute.machine.nic_bytes_per_s)
    wanted = min(calibration.UNEVEN_READS * share, slower_nic)
    return max(1, min(math.ceil(wanted / flow_bytes_per_s(compute, offer)), _most_queues(compute, offer)))


def _most_queues(compute: ComputeFleet, offer: StorageOffer) -> int:
    return min(compute.machine.vcpus, offer.machine.vcpus, calibration.QUEUES_PER_CONTROLLER_MAX)


def queue_budgets(
    node_bytes_per_s: int, compute: ComputeFleet, offer: StorageOffer, nodes: int
) -> tuple[QueueBudget, QueueBudget]:
    """Return the budget of a storage node, to which every reader connects, and of a reader, which connects to each."""
    each = queues(node_bytes_per_s, compute, offer, nodes) + 1
    return (
        QueueBudget(f"each {offer.machine.name}", _held(offer.machine.memory_bytes), compute.count * each),
        QueueBudget(f"each {compute.machine.name}", _held(compute.machine.memory_bytes), nodes * each),
    )


def connections_fit(node_bytes_per_s: int, compute: ComputeFleet, offer: StorageOffer, nodes: int) -> bool:
    """Tell whether both sides hold the queues, and a storage node's subsystem the controllers, of every reader."""
    each = queues(node_bytes_per_s, compute, offer, nodes) + 1
    return (
        compute.count <= calibration.CONTROLLERS_MAX
        and compute.count * each <= _held(offer.machine.memory_bytes)
        and nodes * each <= _held(compute.machine.memory_bytes)
    )


def _held(memory_bytes: int) -> int:
    return math.floor(memory_bytes * calibration.QUEUE_MEMORY_SHARE / calibration.QUEUE_BYTES)
