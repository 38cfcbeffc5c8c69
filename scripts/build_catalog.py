"""Makes the packaged machine catalog and prices from a folder of source tables.

Usage: python scripts/build_catalog.py [SOURCE_FOLDER]

The same tables give the same files. What is taken, and under which licence, is in functions/headrace/data/README.md.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_SOURCE = CHECKOUT.parent / "shared" / "data"
TARGET = CHECKOUT / "functions" / "headrace" / "data"

TYPES_DATED = "2026-11-29"
PRICES_DATED = "2026-07-20"
SPOT_DATED = "2025-06-28"

NIC_OVERRIDES_GBPS = {"p5.48xlarge": 100.0, "p5e.48xlarge": 100.0, "p5en.48xlarge": 100.0}
"""IP line rate of hosts whose published figure is EFA: one ENA interface. Inferred, not measured."""

IOPS_BYTES = 4096
RECLAIMED_PERCENT = {"<5%": 5, "5-10%": 10, "10-15%": 15, "15-20%": 20, ">20%": 30}
"""Upper end of each band of the spot advisor; the highest band has none, and 30 is assumed."""
ACCELERATORS_IN_NAME = re.compile(r"_(\d+)acc$")

Row = Mapping[str, str]
COLUMNS: dict[str, Callable[[Row, Row], object]] = {
    "name": lambda row, _: row["instance_type"],
    "arch": lambda row, _: "arm64" if row["arch"] == "arm64" else "x86_64",
    "vcpus": lambda row, _: int(row["vcpus"]),
    "memory_mib": lambda row, _: int(row["memory_mib"]),
    "nic_gbps": lambda row, _: nic(row)[0],
    "nic_basis": lambda row, _: nic(row)[1],
    "disk_kind": lambda row, _: row["disk_type"] or "none",
    "disk_count": lambda row, _: int(row["disk_count"]),
    "disk_gb": lambda row, _: int(row["disk_size_gb"]),
    "ssd_read_bytes_per_s": lambda row, disk: ssd(row, disk)[0],
    "ssd_write_bytes_per_s": lambda row, disk: ssd(row, disk)[1],
    "ssd_basis": lambda row, disk: ssd(row, disk)[2],
    "ssd_read_iops": lambda row, disk: iops(row, disk),  # noqa: PLW0108  # defined below
    "accelerator": lambda row, _: accelerator(row["accel_name"]),
    "accelerators": lambda row, _: int(row["accel_count"] or 0),
    "accelerator_mib": lambda row, _: int(row["accel_mem_mib"] or 0),
    "ena_express": lambda row, _: int(row["ena_srd"]),
    "ebs_mbps": lambda row, _: int(row["ebs_baseline_mbps"] or 0),
    "ebs_iops": lambda row, _: int(row["ebs_baseline_iops"] or 0),
    "spot": lambda row, _: int("spot" in row["usage_classes"].split("|")),
    "current": lambda row, _: int(row["current_generation"]),
    "bare_metal": lambda row, _: int(row["bare_metal"]),
}


def nic(row: Row) -> tuple[float, str]:
    """Return the sustained IP rate in Gbit/s of one interface, and what it rests on.

    One interface sits on one network card, so a machine with several cards counts as its first, and never as more
    than the whole machine (traps 1, 2 and 4 of the sources).
    """
    if row["instance_type"] in NIC_OVERRIDES_GBPS:
        return NIC_OVERRIDES_GBPS[row["instance_type"]], "override"
    whole = float(row["net_plan_gbps"])
    cards = [float(one) for one in row["net_per_card_baseline"].split("|") if one]
    if len(cards) > 1 and cards[0] < whole:
        return cards[0], "one_card"
    return whole, "baseline"


def ssd(row: Row, disk: Row) -> tuple[int, int, str]:
    """Return sequential bytes/s read and written by all SSDs of the machine, and what they rest on.

    Where only random 4 KiB operations were measured, their bytes stand in: sequential reads were 1.08 to 2.3 times as
    fast on every one of the 56 types where both are known.
    """
    if row["disk_type"] != "ssd":
        return 0, 0, "none"
    if disk.get("seq_read_bytes_s"):
        basis = "extrapolated" if disk["seq_source"].startswith("extrapolated") else "measured"
        return round(float(disk["seq_read_bytes_s"])), round(float(disk["seq_write_bytes_s"])), basis
    if disk.get("netflix_read_iops") and disk.get("netflix_write_iops"):
        rates = [round(float(disk[name]) * IOPS_BYTES) for name in ("netflix_read_iops", "netflix_write_iops")]
        return rates[0], rates[1], "iops_floor"
    return 0, 0, "none"


def iops(row: Row, disk: Row) -> int:
    """Return the random 4 KiB reads per second of all SSDs, the smaller where sources differ; 0 when not measured."""
    known = [disk.get(name, "") for name in ("netflix_read_iops", "iotune_read_iops")]
    return min((round(float(one)) for one in known if one), default=0) if row["disk_type"] == "ssd" else 0


def accelerator(name: str) -> str | None:
    """Return the accelerator's name as jobs write it: without its maker, in lower case, with dashes."""
    return name.removeprefix("NVIDIA ").removeprefix("AWS ").replace(" ", "-").lower() or None


def is_usable(row: Row) -> bool:
    """Tell whether the type is a Nitro machine, bare metal included, that runs Linux."""
    nitro = row["hypervisor"] == "nitro" or (row["hypervisor"] != "xen" and row["bare_metal"] == "1")
    return nitro and not row["instance_type"].startswith("mac")


def read_table(source: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of one source table."""
    with (source / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def catalog(source: Path) -> dict[str, object]:
    """Return the machine catalog: one list per type in the order of `columns`, then a bit mask of its regions."""
    disks = {row["instance_type"]: row for row in read_table(source, "local_nvme_performance.csv")}
    offered = {
        row["instance_type"]: row["regions"].split("|") for row in read_table(source, "ec2_region_offerings.csv")
    }
    rows = [row for row in read_table(source, "ec2_instance_types.csv") if is_usable(row)]
    regions = sorted({region for row in rows for region in offered.get(row["instance_type"], [])})
    types = []
    for row in sorted(rows, key=lambda one: one["instance_type"]):
        mask = sum(1 << regions.index(region) for region in offered.get(row["instance_type"], []))
        disk = disks.get(row["instance_type"], {})
        types.append([*(column(row, disk) for column in COLUMNS.values()), mask])
    columns = [*COLUMNS, "regions_mask"]
    return {
        "dated": TYPES_DATED,
        "regions": regions,
        "workloads": workloads(source),
        "columns": columns,
        "types": types,
    }


def prices(source: Path) -> dict[str, object]:
    """Return list prices of us-east-1 in USD per hour, what multiplies them elsewhere, and spot savings in per cent."""
    known = {row["instance_type"] for row in read_table(source, "ec2_instance_types.csv") if is_usable(row)}
    listed = {
        row["instance_type"]: float(row["usd_per_hour"]) for row in read_table(source, "ec2_ondemand_us_east_1.csv")
    }
    multipliers = {
        row["region"]: {name: float(value) for name, value in row.items() if name != "region" and value}
        for row in read_table(source, "ec2_region_price_multipliers.csv")
    }
    advised = [row for row in read_table(source, "ec2_spot_advisor.csv") if row["instance_type"] in known]
    return {
        "dated": PRICES_DATED,
        "spot_dated": SPOT_DATED,
        "us_east_1_usd_per_hour": {name: listed[name] for name in sorted(known & listed.keys())},
        "family_multipliers": multipliers,
        "spot_savings_percent": by_region(advised, lambda row: int(row["savings_pct"])),
        "spot_reclaimed_percent": by_region(advised, lambda row: RECLAIMED_PERCENT[row["interruption_band"]]),
        "services_region": "us-east-1",
        "services": services(source),
        **transfers(read_table(source, "aws_data_transfer_prices.csv")),
    }


def transfers(rows: list[dict[str, str]]) -> dict[str, object]:
    """Return what a gigabyte costs out of each region, and between the one pair that has a price of its own."""
    pair = next(float(row["us_east_1_2_pair_usd_per_gb"]) for row in rows if row["us_east_1_2_pair_usd_per_gb"])
    return {
        "transfer_out_usd_per_gb": {row["region"]: float(row["inter_region_out_usd_per_gb"]) for row in rows},
        "transfer_pairs_usd_per_gb": {"us-east-1 us-east-2": pair},
    }


def by_region(rows: list[dict[str, str]], value: Callable[[Row], int]) -> dict[str, dict[str, int]]:
    """Return a value of each row by its region and type."""
    made: dict[str, dict[str, int]] = {}
    for row in rows:
        made.setdefault(row["region"], {})[row["instance_type"]] = value(row)
    return made


def services(source: Path) -> list[dict[str, object]]:
    """Return what storage services cost, with how far each price is checked; only plans' comparisons use them."""
    return [
        {
            "name": f"{row['service']} {row['item']}",
            "unit": row["unit"],
            "usd": float(row["usd"]),
            "status": row["status"],
        }
        for row in read_table(source, "service_prices_us_east_1.csv")
        if row["service"] in ("ebs", "fsx_lustre") or row["item"] == "GET and other"
    ]


def workloads(source: Path) -> list[dict[str, object]]:
    """Return what each MLPerf Storage workload reads per accelerator."""
    return [
        {
            "workload": row["workload"],
            "accelerator": row["accelerator"],
            "sample_bytes": float(row["sample_bytes"]),
            "samples_per_s_at_full_use": float(row["samples_per_s_at_au100"]),
            "least_use": float(row["min_au"]),
        }
        for row in read_table(source, "mlperf_storage_workloads.csv")
    ]


def benchmarks(source: Path) -> dict[str, object]:
    """Return the published MLPerf Storage v1.0 rows, and what the largest of them ran on."""
    rows = [row for row in read_table(source, "mlperf_storage_v1_0_results.csv") if not is_copied(row)]
    run = json.loads((source / "volumez_v1_0.json").read_text(encoding="utf-8"))
    return {
        "source": "MLPerf Storage v1.0, mlcommons/storage_results_v1.0@64c2ce4",
        "licence": "Apache-2.0",
        "rows": [benchmark(row) for row in rows],
        "largest": {
            "submitter": "Volumez",
            "storage_type": run["storage"]["type"],
            "storage_count": run["storage"]["count"],
            "compute_type": run["compute"]["type"],
            "compute_count": run["compute"]["count"],
            "accelerators": run["compute"]["simulated_h100_total"],
            "files": run["dataset"]["files_trained"],
            "file_bytes": run["dataset"]["record_bytes"],
        },
    }


def is_copied(row: Row) -> bool:
    """Tell whether the report is another system's: its folder names another number of accelerators (trap 8)."""
    named = ACCELERATORS_IN_NAME.search(row["system_or_run"])
    return named is not None and int(named[1]) != int(row["num_accelerators"])


def benchmark(row: Row) -> dict[str, object]:
    """Return one published row."""
    return {
        "division": row["division"],
        "submitter": row["submitter"],
        "system": row["system_or_run"],
        "workload": row["model"],
        "accelerator": row["accelerator"],
        "accelerators": int(row["num_accelerators"]),
        "hosts": int(row["hosts"]),
        "busy_share": round(float(row["au_mean_pct"]) / 100, 6),
        "read_mib_per_s": float(row["mib_per_s"]),
        "files": int(row["num_files_train"]),
        "samples_per_file": int(row["samples_per_file"]),
    }


def build(source: Path) -> dict[str, str]:
    """Return the text of each packaged file by its name, before compression."""
    made = {"catalog.json": catalog(source), "prices.json": prices(source), "benchmarks.json": benchmarks(source)}
    texts = {
        name: json.dumps(value, separators=(",", ":"), sort_keys=name == "prices.json") for name, value in made.items()
    }
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    return {**texts, "manifest.json": json.dumps({"sha256": sums}, indent=2) + "\n"}


def main() -> None:
    """Write the files beside the package."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SOURCE
    for name, text in build(source).items():
        if name == "manifest.json":
            (TARGET / name).write_text(text, encoding="utf-8")
        else:
            (TARGET / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"wrote {TARGET} from {source}")


if __name__ == "__main__":
    main()
