"""Finds the cheapest way to run a job by trying every machine, number of nodes and volumes.

It shares no code with the planner and knows only the published inputs and the rules as they are written down.

Disks whose rate nobody measured (0) do only for a job that asks for the compute nodes' own.

A machine is a mapping with `name, nic, vcpus, memory, disks, disk_bytes, read, write, iops, gpu, gpus, usd, express`
and `reclaimed`; a job has `gpu, type, count, reads, request, latency_ms, storage, nodes, mirror, hours, budget, spot`,
`resume, away, usd_per_gb, checkpoint, period`; rates are bytes/s. A third of the data of an `away` job lies in another
region.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Machine = Mapping[str, Any]
Job = Mapping[str, Any]
Data = Mapping[str, int]

MIB, GIB = 2**20, 2**30
NIC_SHARE = 0.707
"""8.84 of 12.5 GB/s per storage host in the largest published run."""
FLOW, EXPRESS_FLOW = 625_000_000, 3_125_000_000
QUEUE_BYTES, UNEVEN, QUEUES_MAX = 262_144, 4, 128
NODES_MAX, STRIPED_VOLUMES_MAX = 256, 8
XFS_LEAST, INODE_AND_TAIL, FREE_SPACE = 300_000_000, 4_608, 1.10
GETS_PER_S, GETS_PER_VCPU = 5_500, 2_000
READ_AHEAD = 131_072
LATENCY_MS = {"local": 0.258, "fleet": 0.6, "direct": 200.0}
GPU_BREAKS, BREAKS, MONTH = 2e-5, 1e-5, 730
SPOT_SAVING = 60
ROOT_DISK_WRITE = 125_000_000
LAUNCH, SLOW_LAUNCH, ENDING, SLOW_ENDING = 120, 400, 60, 300
COPY_SLOWDOWN, TRAIN_SLOWDOWN = 2.0, 1.10


def cheapest_usd(machines: Sequence[Machine], job: Job, data: Data) -> float | None:
    """Return what the cheapest way costs on average that stays within the budget, or None when there is no way."""
    costs = [cost for reader in machines for cost in _costs_with(reader, machines, job, data)]
    budget = job["budget"] if job["budget"] is not None else math.inf
    return min((usd for usd, high in costs if high <= budget), default=None)


def _costs_with(reader: Machine, machines: Sequence[Machine], job: Job, data: Data) -> Iterator[tuple[float, float]]:
    if job["type"] is not None and reader["name"] != job["type"]:
        return
    if job["gpu"] is not None and (reader["gpu"] != job["gpu"] or not reader["gpus"]):
        return
    units = reader["gpus"] if job["gpu"] is not None else 1
    readers = -(-job["count"] // units)
    each = math.ceil(job["reads"] * min(units, job["count"]))
    if not _checkpoints_fit(reader, readers, job):
        return
    soon = {kind for kind, ms in LATENCY_MS.items() if job["latency_ms"] is None or ms <= job["latency_ms"]}
    if job["storage"] in ("auto", "local") and "local" in soon and _own_disks_do(reader, readers, each, job, data):
        yield _cost_local(reader, readers, job, data)
    if job["storage"] == "direct" and "direct" in soon and _s3_does(reader, readers, each, job, data):
        passes = math.ceil(job["reads"] * job["count"]) * job["hours"] * 3600 / data["bytes"]
        yield _cost(reader, readers, {}, 0, 0, passes * _moved(job, data), job)
    if job["storage"] in ("auto", "fleet") and "fleet" in soon and each <= NIC_SHARE * reader["nic"]:
        for server in machines:
            yield from _costs_of_fleets(server, reader, readers, each, job, data)


def _checkpoints_fit(reader: Machine, readers: int, job: Job) -> bool:
    if not job["checkpoint"]:
        return True
    share = math.ceil(job["checkpoint"] / readers)
    own = reader["disks"] * reader["disk_bytes"]
    if own and own < 2 * share:
        return False
    rate = reader["write"] if own else ROOT_DISK_WRITE
    return bool(not rate or share / job["period"] <= rate)


def _disks_read(one: Machine, job: Job, data: Data) -> float:
    """Return what the disks give: in bytes, or in single reads of what the loader asks for at a time."""
    useful = job["request"] or max(1, min(READ_AHEAD, data["bytes"] // data["files"]))
    return float(min(one["read"], one["iops"] * useful) if one["iops"] else one["read"])


def _own_disks_do(reader: Machine, readers: int, each: int, job: Job, data: Data) -> bool:
    held = math.ceil((data["bytes"] + INODE_AND_TAIL * data["files"]) * FREE_SPACE) + XFS_LEAST
    room = reader["disks"] * reader["disk_bytes"] - 2 * math.ceil(job["checkpoint"] / readers)
    reads_enough = each <= _disks_read(reader, job, data) if reader["read"] else job["storage"] == "local"
    return bool(reader["disks"] and held <= room and reads_enough)


def _s3_does(reader: Machine, readers: int, each: int, job: Job, data: Data) -> bool:
    gets = job["reads"] * job["count"] * data["files"] / data["bytes"]
    most_gets = min(GETS_PER_S, readers * reader["vcpus"] * GETS_PER_VCPU)
    return bool(each <= NIC_SHARE * reader["nic"] and gets <= most_gets)


def _costs_of_fleets(
    server: Machine, reader: Machine, readers: int, each: int, job: Job, data: Data
) -> Iterator[tuple[float, float]]:
    if not server["disks"] or not server["read"] or not server["write"]:
        return
    copies = 2 if job["mirror"] else 1
    one_serves = math.floor(min(_disks_read(server, job, data), NIC_SHARE * server["nic"]))
    flow = EXPRESS_FLOW if server["express"] and reader["express"] else FLOW
    pair = flow * min(server["vcpus"], reader["vcpus"], QUEUES_MAX)
    numbers = [job["nodes"]] if job["nodes"] else range(copies, NODES_MAX + 1)
    for nodes in numbers:
        if nodes < copies or nodes * one_serves < math.ceil(job["reads"] * job["count"]) or nodes * pair < each:
            continue
        if not _queues_fit(server, reader, readers, nodes, each, flow):
            continue
        for volumes in _ways_to_divide(server, nodes, copies, data):
            seconds = _copy_seconds(server, nodes, volumes, copies, job, data)
            moved = copies * _moved(job, data)
            yield _cost(reader, readers, server, nodes, seconds, moved, job)


def _queues_fit(server: Machine, reader: Machine, readers: int, nodes: int, each: int, flow: int) -> bool:
    """Tell whether a quarter of each side's memory holds the queues of all connections, an admin queue with each."""
    wanted = math.ceil(min(UNEVEN * each / nodes, server["nic"], reader["nic"]) / flow)
    queues = 1 + max(1, min(wanted, server["vcpus"], reader["vcpus"], QUEUES_MAX))
    return all(
        count * queues <= one["memory"] / 4 // QUEUE_BYTES for one, count in ((server, readers), (reader, nodes))
    )


def _ways_to_divide(server: Machine, nodes: int, copies: int, data: Data) -> list[int]:
    """Return the numbers of volumes over which so many nodes can hold all the data, whatever falls where."""
    striped = data["largest"] >= GIB and nodes > 1 and data["largest"] * nodes > data["bytes"]
    tried = range(1, min(nodes, data["files"], STRIPED_VOLUMES_MAX) + 1) if striped else [nodes]
    return [one for one in tried if _volume_room(server, nodes, one) >= copies * _fullest(one, data)]


def _volume_room(server: Machine, nodes: int, volumes: int) -> int:
    return int(server["disks"] * server["disk_bytes"] * nodes // volumes)


def _fullest(volumes: int, data: Data) -> int:
    """Return what the fullest volume needs: its fair share, and all but its share of the largest file on top."""
    stored, largest = data["bytes"] + INODE_AND_TAIL * data["files"], data["largest"] + INODE_AND_TAIL
    content = -(-(stored + (volumes - 1) * largest) // volumes)
    return math.ceil(content * FREE_SPACE) + XFS_LEAST


def _copy_seconds(
    server: Machine, nodes: int, volumes: int, copies: int, job: Job, data: Data, copied_by: int = 1
) -> float:
    """Return how long the copy from S3 takes: volumes are filled side by side, by one node each."""
    link = NIC_SHARE * server["nic"]
    if job["away"]:
        link = server["nic"] / 2 if server["vcpus"] >= 32 else min(link, FLOW)
    rate = min(link, server["write"] or link)
    gets = min(GETS_PER_S, nodes * server["vcpus"] * GETS_PER_VCPU)
    return float(copies * max(-(-data["bytes"] // volumes) / rate, copied_by * _requests(data) / gets))


def _requests(data: Data) -> int:
    """Return the GETs of one copy: objects above 32 MiB are read in ranges as large."""
    return data["files"] if data["largest"] <= 32 * MIB else max(data["files"], -(-data["bytes"] // (32 * MIB)))


def _cost_local(reader: Machine, readers: int, job: Job, data: Data) -> tuple[float, float]:
    seconds = _copy_seconds(reader, readers, 1, 1, job, data, copied_by=readers)
    return _cost(reader, readers, {}, 0, seconds, readers * _moved(job, data), job)


def _moved(job: Job, data: Data) -> float:
    return float(data["bytes"] // 3 / 1e9 * job["usd_per_gb"]) if job["away"] else 0.0


def _cost(
    reader: Machine, readers: int, server: Machine, servers: int, copy: float, moved: float, job: Job
) -> tuple[float, float]:
    """Return USD on average, and when all goes slowly on machines at list price.

    Storage bills from its launch, compute from its own; without storage machines the copy is on the compute's bill.
    """
    storage, listed = servers * server["usd"] if servers else 0.0, readers * reader["usd"]
    compute = readers * round(reader["usd"] * (100 - SPOT_SAVING) / 100, 6) if job["spot"] else listed

    def seconds(launch: float, slower: float, train: float, ending: float) -> tuple[float, float]:
        working = launch + train * job["hours"] * 3600 + ending
        return (launch + copy * slower + working, working) if servers else (0.0, working + copy * slower)

    stored, computed = seconds(LAUNCH, 1, 1, ENDING)
    slow_stored, slow_computed = seconds(SLOW_LAUNCH, COPY_SLOWDOWN, TRAIN_SLOWDOWN, SLOW_ENDING)
    low = (storage * stored + compute * computed) / 3600 + moved
    high = (storage * slow_stored + listed * slow_computed) / 3600 + moved
    lost_servers = 0.0 if job["mirror"] else servers * BREAKS * stored / 3600
    lost_readers = readers * _losses_per_hour(reader, job) * computed / 3600
    if not job["resume"]:
        return low * (1 + (math.exp(min(20.0, lost_servers + lost_readers)) - 1) / 2), high
    trained = job["hours"] * 3600
    repeated = (min(trained, job["period"]) if job["checkpoint"] else trained) / 2
    again = lost_servers * (LAUNCH + copy) + lost_readers * (LAUNCH + repeated + (0 if servers else copy))
    return low + again * (storage + compute) / 3600, high


def _losses_per_hour(reader: Machine, job: Job) -> float:
    taken_back = -math.log(1 - reader["reclaimed"] / 100) / MONTH if job["spot"] else 0.0
    return float(BREAKS + reader["gpus"] * GPU_BREAKS + taken_back)
