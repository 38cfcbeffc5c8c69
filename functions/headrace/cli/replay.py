"""`headrace replay`."""

from __future__ import annotations

import click

from headrace.cli.options import Place, for_every_command
from headrace.client.opening import read_benchmarks, read_prices
from headrace.domain.replay import replay as replay_rows
from headrace.report.replay_page import replay_page

REGION = "us-east-1"
"""Where the largest public run was priced."""


@click.command(epilog="Example: headrace replay")
@for_every_command
def replay(place: Place) -> int:
    """Hold the planner against published results.

    Prints, for each published MLPerf Storage v1.0 row, the demand from first principles beside the measured
    throughput; the plan for each number of accelerators in us-east-1; and the largest public run, modelled and priced.
    """
    prices = read_prices()
    found = replay_rows(read_benchmarks(), prices.catalog(REGION), prices.price_list(REGION))
    place.answer({"replay": found.model_dump(mode="json")}, replay_page(found))
    return 0
