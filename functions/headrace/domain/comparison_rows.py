"""What every comparison row is made of: checked prices, and the run's cost with a service in place of the fleet."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.domain import calibration
from headrace.domain.candidates import Candidate
from headrace.domain.plan import Comparison

HOURS_PER_MONTH = 730
"""By which AWS divides monthly prices."""
GIB = 2**30
_SECONDS_PER_HOUR = 3600

Prices = Mapping[str, float]


class Unpriced(Exception):
    """A price that the row needs is not checked, so there is no row."""


def monthly_usd(prices: Prices, name: str, amount: float) -> float:
    """Return what so much of a service costs a month. Raises Unpriced."""
    if name not in prices:
        raise Unpriced(name)
    return prices[name] * amount


def priced(candidate: Candidate, name: str, service_usd_per_month: float, setup_s: float, because: str) -> Comparison:
    """Return the row: the service bills from its setup on, the compute nodes from their launch."""
    service = service_usd_per_month / HOURS_PER_MONTH
    working_s = calibration.LAUNCH_S + candidate.job.duration_hours * _SECONDS_PER_HOUR + calibration.ENDING_S
    run = service * (setup_s + working_s) + candidate.compute_usd_per_hour * working_s
    return Comparison(
        name=name,
        usd_per_hour=round(service + candidate.compute_usd_per_hour, 4),
        usd_low=round(run / _SECONDS_PER_HOUR, 4),
        because=because,
    )


def impossible(name: str, because: str) -> Comparison:
    """Return the row of a service that does not do."""
    return Comparison(name=name, because=because)
