"""What a deployed stack costs in a month in which it runs nothing, item by item: python -m infra.idle_cost TEMPLATE.

Counts come from the synthesised template, list prices of us-east-1 from service-prices.csv, without free allowances;
what is assumed stands in the items themselves.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

PRICES = Path(__file__).with_name("service-prices.csv")
HOURS, MINUTES = 730, 730 * 60
"""Of a month, as price lists count it."""
PASS_SECONDS, PASS_LOG_BYTES, PASS_READS = 1.0, 2000, 4
"""Assumed of one pass of the sweep that finds nothing."""
ASSETS_GB = 0.1
SNAPSHOT_GB = {"storage": 3, "compute": 60}
"""Assumed to be stored of an image."""
Prices = Mapping[tuple[str, str], float]


class Item(NamedTuple):
    """One line of the bill."""

    group: str
    what: str
    usd: float


def read_prices() -> Prices:
    """Return prices in USD by service and item."""
    with PRICES.open(newline="", encoding="utf-8") as file:
        return {(row["service"], row["item"]): float(row["usd"]) for row in csv.DictReader(file)}


def idle_items(template: Mapping[str, Any], prices: Prices) -> list[Item]:
    """Return every item of a month without a run."""
    return [*_control_plane(template, prices), *_endpoints(template, prices), *_images(template, prices)]


def _control_plane(template: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    group = "control plane"
    passes = MINUTES / _sweep_minutes(template)
    gb_seconds = passes * PASS_SECONDS * _sweep_memory_mib(template) / 1024
    alarms, dashboards, keys = (
        len(_of_type(template, one))
        for one in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::KMS::Key")
    )
    yield Item(group, f"{alarms} alarms", alarms * prices["cloudwatch", "alarm"])
    yield Item(group, f"{passes:,.0f} sweeps, requests", passes / 1e6 * prices["lambda", "requests"])
    yield Item(group, f"sweeps of {PASS_SECONDS:g} s", gb_seconds * prices["lambda", "arm duration"])
    yield Item(group, "their traces", passes / 1e6 * prices["xray", "traces recorded"])
    yield Item(group, f"their logs, {PASS_LOG_BYTES} bytes each", _gb(passes) * prices["cloudwatch", "logs taken in"])
    yield Item(
        group, f"their {PASS_READS} reads each", passes * PASS_READS / 1e6 * prices["dynamodb", "reads on demand"]
    )
    yield Item(group, f"{ASSETS_GB} GB of code and agent", ASSETS_GB * prices["s3", "standard storage"])
    if dashboards:
        yield Item(group, f"{dashboards} dashboard", dashboards * prices["cloudwatch", "dashboard"])
    if keys:
        yield Item(group, f"{keys} key", keys * prices["kms", "key"])


def _endpoints(template: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    endpoints = _of_type(template, "AWS::EC2::VPCEndpoint")
    for endpoint in sorted(endpoints, key=lambda one: str(one["ServiceName"])):
        name = str(endpoint["ServiceName"]).rpartition(".")[2]
        if endpoint.get("VpcEndpointType") == "Interface":
            zones = len(endpoint["SubnetIds"])
            usd = zones * HOURS * prices["vpc_endpoint", "interface endpoint per zone"]
            yield Item("endpoints", f"{name}, in {zones} zone", usd)
        else:
            yield Item("endpoints", name, HOURS * prices["vpc_endpoint", "gateway endpoint"])


def _images(template: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    names = sorted(str(one["Name"]) for one in _of_type(template, "AWS::ImageBuilder::ImagePipeline"))
    for name in names:
        role = next(role for role in SNAPSHOT_GB if f"-{role}-" in name)
        gb = SNAPSHOT_GB[role]
        yield Item("images", f"{name.partition('-')[2]}, {gb} GB", gb * prices["ebs", "snapshot"])


def _gb(passes: float) -> float:
    return passes * PASS_LOG_BYTES / 1e9


def _of_type(template: Mapping[str, Any], type_: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in template["Resources"].values() if one["Type"] == type_]


def _sweep_minutes(template: Mapping[str, Any]) -> int:
    rates = [one.get("ScheduleExpression", "") for one in _of_type(template, "AWS::Events::Rule")]
    (minutes,) = (int(found[1]) for rate in rates if (found := re.fullmatch(r"rate\((\d+) minutes\)", rate)))
    return minutes


def _sweep_memory_mib(template: Mapping[str, Any]) -> int:
    functions = _of_type(template, "AWS::Lambda::Function")
    return next(int(one["MemorySize"]) for one in functions if str(one.get("FunctionName", "")).endswith("-OnSweep"))


def printed(items: Sequence[Item]) -> str:
    """Return the items in groups with the sum of each."""
    lines = []
    for group, members in groupby(items, lambda one: one.group):
        found = list(members)
        lines.append(f"{group:38} {sum(one.usd for one in found):6.2f} USD a month")
        lines += [f"  {one.what:36} {one.usd:6.2f}" for one in found]
    return "\n".join(lines) + "\n"


def main(template: Path) -> None:
    """Print what the stack of that template costs when it runs nothing."""
    sys.stdout.write(printed(idle_items(json.loads(template.read_text(encoding="utf-8")), read_prices())))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
