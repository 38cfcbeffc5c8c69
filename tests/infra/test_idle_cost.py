"""What a stack costs when it runs nothing: counted from the template, priced by the table, shown in the README."""

from __future__ import annotations

import csv
import re

import pytest

from infra.checkout import CHECKOUT
from infra.idle_cost import PRICES, Item, idle_items, printed, read_prices
from tests.infra.assembly import Assembly


def sums(items: list[Item]) -> dict[str, float]:
    return {group: sum(one.usd for one in items if one.group == group) for group in {one.group for one in items}}


def test_the_control_plane_costs_less_than_a_dollar_a_month(defaults: Assembly) -> None:
    found = sums(idle_items(defaults.template, read_prices()))
    assert 0.4 < found["control plane"] < 1.0
    assert found["endpoints"] == pytest.approx(3 * 730 * 0.01)


def test_the_readme_shows_what_the_command_prints(defaults: Assembly) -> None:
    shown = re.search(r"\$ make idle\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == printed(idle_items(defaults.template, read_prices()))


def test_options_are_counted(options: Assembly) -> None:
    items = {one.what: one.usd for one in idle_items(options.template, read_prices())}
    assert (items["1 dashboard"], items["1 key"]) == (3.0, 1.0)
    assert "images" not in sums(idle_items(options.template, read_prices()))


def test_more_alarms_cost_more(defaults: Assembly) -> None:
    alarm = next(one for one in defaults.resources.values() if one["Type"] == "AWS::CloudWatch::Alarm")
    more = {"Resources": {**defaults.resources, "Another": alarm}}
    before, after = (sums(idle_items(one, read_prices()))["control plane"] for one in (defaults.template, more))
    assert after - before == pytest.approx(0.10)


def test_every_price_says_where_it_is_from_and_is_used() -> None:
    with PRICES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"] and row["unit"] for row in rows)
    text = (CHECKOUT / "infra" / "idle_cost.py").read_text()
    assert [row["item"] for row in rows if f'"{row["service"]}", "{row["item"]}"' not in text] == []
