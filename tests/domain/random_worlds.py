"""Random small catalogs and jobs from a seed, each both as the planner and as the brute force is given it."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from headrace.domain.catalog import Catalog, Market, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.job import JobSpec
from tests.domain.small_world import GB, TB, dataset, job, machine, world

HOME, AWAY = "us-east-1", "us-west-2"
GPU = "h100"


class World(NamedTuple):
    """One random world in both forms."""

    machines: list[dict[str, Any]]
    wanted: dict[str, Any]
    data: dict[str, int]
    spec: JobSpec
    summary: DatasetSummary
    catalog: Catalog
    prices: PriceList


def random_world(seed: int) -> World:
    """Return the world of that seed."""
    dice = random.Random(seed)  # noqa: S311  # reproducible worlds, no secrets
    machines = [_machine(dice, f"t{number}.x") for number in range(dice.randint(2, 6))]
    machines.append({**_machine(dice, "cpu.large"), "nic": dice.choice([5, 25, 100]) * GB, "vcpus": 64})
    data = _data(dice)
    return as_given(machines, _wanted(dice, machines), data)


def real_world(seed: int, packed: dict[str, Any], usd: dict[str, float], market: Market) -> World:
    """Return a random job on a few of the packaged machines: the brute force reads the packaged rows itself."""
    dice = random.Random(seed)  # noqa: S311  # reproducible worlds, no secrets
    rows = [dict(zip(packed["columns"], row, strict=True)) for row in packed["types"]]
    able = [row for row in rows if row["current"] and not row["bare_metal"] and row["name"] in usd]
    offered = {one.name for one in market.catalog.types}
    with_disks = [row for row in able if row["ssd_read_bytes_per_s"] and row["name"] in offered]
    readers = [row for row in able if row["accelerator"] == GPU and row["name"] in offered]
    named = dice.choice([row for row in able if row["name"] in offered and row["vcpus"] >= 16])
    chosen = {row["name"]: row for row in (*dice.sample(with_disks, 6), *readers, named)}
    machines = [_as_dict(row, usd) for row in chosen.values()]
    data = _data(dice)
    wanted = {**_wanted(dice, machines), "away": False, "spot": False}
    wanted["type"] = None if wanted["gpu"] else named["name"]
    types = tuple(one for one in market.catalog.types if one.name in chosen)
    return World(
        machines,
        wanted,
        data,
        _spec(wanted),
        dataset(data["bytes"], data["files"], data["largest"]),
        market.catalog.model_copy(update={"types": types}),
        market.prices,
    )


def _as_dict(row: dict[str, Any], usd: dict[str, float]) -> dict[str, Any]:
    solid = row["disk_kind"] == "ssd"
    return {
        "name": row["name"],
        "nic": round(row["nic_gbps"] * 125_000_000),
        "vcpus": row["vcpus"],
        "memory": row["memory_mib"] * 2**20,
        "disks": row["disk_count"] if solid else 0,
        "disk_bytes": row["disk_gb"] * GB if solid else 0,
        "read": row["ssd_read_bytes_per_s"],
        "write": row["ssd_write_bytes_per_s"],
        "iops": row["ssd_read_iops"],
        "gpu": row["accelerator"],
        "gpus": row["accelerators"],
        "reclaimed": 0,
        "express": bool(row["ena_express"]),
        "usd": usd[row["name"]],
    }


def as_given(machines: list[dict[str, Any]], wanted: dict[str, Any], data: dict[str, int]) -> World:
    """Return both forms of one world."""
    catalog, prices = world({_type(one): one["usd"] for one in machines}, savings={one["name"]: 60 for one in machines})
    prices = prices.model_copy(update={"spot_reclaimed_percent": {one["name"]: one["reclaimed"] for one in machines}})
    prices = prices.model_copy(update={"transfer_out_usd_per_gb": {AWAY: wanted["usd_per_gb"]}})
    summary = dataset(data["bytes"], data["files"], data["largest"])
    if wanted["away"]:
        parts = (data["bytes"] - data["bytes"] // 3, data["bytes"] // 3)
        summary = summary.model_copy(update={"input_bytes": parts})
    return World(machines, wanted, data, _spec(wanted), summary, catalog, prices)


def _machine(dice: random.Random, name: str) -> dict[str, Any]:
    disks = dice.choice([0, 1, 2, 4, 8])
    gpus = dice.choice([0, 0, 1, 4, 8])
    return {
        "name": name,
        "nic": dice.choice([1, 2, 5, 12, 25, 75]) * GB // dice.choice([1, 2]),
        "vcpus": dice.choice([2, 8, 16, 32, 96]),
        "memory": dice.choice([10**8, GB // 2, 16 * GB, 64 * GB]),
        "disks": disks,
        "disk_bytes": dice.choice([100 * GB, 900 * GB, 2 * TB, 7 * TB]) if disks else 0,
        "read": disks * (rate := dice.choice([0, 1, 2, 4])) * GB,
        "write": disks * rate * GB // 2,
        "iops": disks * dice.choice([0, 20_000, 250_000]),
        "gpu": GPU if gpus else None,
        "gpus": gpus,
        "usd": dice.randint(10, 3_000) / 100,
        "reclaimed": dice.choice([5, 10, 20]),
        "express": dice.random() < 0.3,
    }


def _data(dice: random.Random) -> dict[str, int]:
    total = dice.choice([GB, 50 * GB, TB, 9 * TB, 60 * TB])
    files = dice.choice([1, 3, 12, 1_000, 2_000_000])
    even = -(-total // files)
    return {"bytes": total, "files": files, "largest": min(total, even * dice.choice([1, 1, 2, 5]))}


def _wanted(dice: random.Random, machines: list[dict[str, Any]]) -> dict[str, Any]:
    by_gpu = dice.random() < 0.6 and any(one["gpus"] for one in machines)
    checkpoint = dice.choice([0, 0, 0, 50 * GB, 800 * GB])
    return {
        "gpu": GPU if by_gpu else None,
        "type": None if by_gpu else "cpu.large",
        "count": dice.choice([1, 2, 8, 9, 64]),
        "reads": dice.choice([10**6, 200 * 10**6, GB, 3 * GB]),
        "request": dice.choice([None, None, 4_096, 100_000]),
        "latency_ms": dice.choice([None, None, None, None, None, 300.0, 1.0, 0.3, 0.1]),
        "storage": dice.choice(["auto", "auto", "fleet", "local", "direct"]),
        "nodes": dice.choice([None, None, None, 1, 7, 40]),
        "mirror": dice.random() < 0.3,
        "hours": dice.choice([0.1, 1, 24, 300]),
        "budget": dice.choice([None, None, 50.0, 2_000.0]),
        "spot": dice.random() < 0.3,
        "resume": dice.random() < 0.5,
        "away": dice.random() < 0.2,
        "usd_per_gb": dice.choice([0.01, 0.02, 0.147]),
        "checkpoint": checkpoint,
        "period": dice.choice([60.0, 1_800.0]) if checkpoint else 1.0,
    }


def _type(one: dict[str, Any]) -> Any:
    solid = {"disk_kind": "ssd" if one["disks"] else "none", "ssd_basis": "measured" if one["read"] else "none"}
    return machine(
        one["name"],
        vcpus=one["vcpus"],
        memory_bytes=one["memory"],
        nic_bytes_per_s=one["nic"],
        disk_count=one["disks"],
        disk_bytes=one["disk_bytes"],
        ssd_read_bytes_per_s=one["read"],
        ssd_read_iops=one["iops"],
        ssd_write_bytes_per_s=one["write"],
        accelerator=one["gpu"],
        accelerators=one["gpus"],
        ena_express=one["express"],
        **solid,
    )


def _spec(wanted: dict[str, Any]) -> JobSpec:
    kind = {"accelerator": wanted["gpu"]} if wanted["gpu"] else {"instance_type": wanted["type"]}
    demand: dict[str, Any] = {
        "read_bytes_per_s": wanted["reads"],
        **({"request_bytes": wanted["request"]} if wanted["request"] else {}),
        **({"read_latency_ms": wanted["latency_ms"]} if wanted["latency_ms"] else {}),
    }
    if wanted["checkpoint"]:
        demand["checkpoints"] = {"bytes": wanted["checkpoint"], "period_s": wanted["period"]}
    inputs = [{"source": "s3://datasets/here/", "name": "here", "region": HOME}]
    if wanted["away"]:
        inputs.append({"source": "s3://datasets/there/", "name": "there", "region": AWAY})
    optional = {
        **({"storage_nodes": wanted["nodes"]} if wanted["nodes"] else {}),
        **({"budget_usd": wanted["budget"]} if wanted["budget"] else {}),
    }
    return job(
        data=inputs,
        compute={**kind, "count": wanted["count"], "capacity": "spot" if wanted["spot"] else "on-demand"},
        on_node_loss="resume" if wanted["resume"] else "fail",
        demand=demand,
        storage=wanted["storage"],
        resilience="mirror" if wanted["mirror"] else "none",
        duration_hours=wanted["hours"],
        **optional,
    )
