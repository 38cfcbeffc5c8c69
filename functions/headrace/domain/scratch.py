"""Room on storage nodes for what compute nodes without SSDs write, so that it outlives them."""

from __future__ import annotations

import math

from headrace.domain import calibration
from headrace.domain.candidates import Candidate, checkpoint_share
from headrace.domain.connections import queue_budgets
from headrace.domain.fleets import StorageOffer
from headrace.domain.sizing import fullest_node_bytes

WHOLE_PPM = 1_000_000


def lent_ppm(candidate: Candidate) -> int:
    """Return the share of a storage node's SSDs, in parts per million, that one compute node gets; 0 for none.

    It is of what the data set leaves free: no storage is rented for it. None with mirrors, which let a run go on
    without a storage node: this share would be gone with that node.
    """
    offer = candidate.storage
    if offer is None or candidate.compute.machine.ssd_bytes or candidate.copies > 1:
        return 0
    free_bytes = offer.machine.ssd_bytes - fullest_node_bytes(
        candidate.dataset, candidate.copies, candidate.storage_nodes, candidate.volumes
    )
    most_bytes = min(free_bytes, math.floor(calibration.LENT_SHARE_MAX * offer.machine.ssd_bytes))
    each_bytes = min(most_bytes // borrowers(candidate), calibration.LENT_BYTES_MAX)
    if each_bytes < least_bytes(candidate) or not _connects(candidate, offer):
        return 0
    return each_bytes * WHOLE_PPM // offer.machine.ssd_bytes


def lent_bytes(candidate: Candidate) -> int:
    """Return the bytes of that share."""
    return candidate.storage.machine.ssd_bytes * lent_ppm(candidate) // WHOLE_PPM if candidate.storage else 0


def borrowers(candidate: Candidate) -> int:
    """Return how many compute nodes the storage node with the most of them has."""
    return math.ceil(candidate.compute.count / candidate.storage_nodes)


def least_bytes(candidate: Candidate) -> int:
    """Return what a share must have: a root disk's size, which it stands in for, and two checkpoints."""
    return max(calibration.ROOT_DISK_BYTES, 2 * checkpoint_share(candidate.need, candidate.compute))


def _connects(candidate: Candidate, offer: StorageOffer) -> bool:
    """Tell whether both sides have memory for the queues of one more connection for each borrower."""
    server, reader = queue_budgets(candidate.need.node_bytes_per_s, candidate.compute, offer, candidate.storage_nodes)
    each = server.needed // candidate.compute.count
    return server.needed + borrowers(candidate) * each <= server.offered and reader.needed + each <= reader.offered
