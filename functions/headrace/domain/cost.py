"""What machines cost: seconds times rate, in whole millionths of a dollar, so that the parts make the total exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

_SECONDS_PER_HOUR = 3600
_MICROS_PER_USD = 10**6
_CENT = Decimal("0.01")


@dataclass(frozen=True)
class NodeUse:
    """One machine and how long it was billed."""

    node_id: str
    seconds: float
    usd_per_hour: float


@dataclass(frozen=True)
class BillLine:
    """What one machine cost."""

    node_id: str
    micro_usd: int

    @property
    def usd(self) -> float:
        """The amount in USD, to the millionth."""
        return self.micro_usd / _MICROS_PER_USD


@dataclass(frozen=True)
class Bill:
    """What machines cost together: the sum of the lines, exactly."""

    lines: tuple[BillLine, ...]

    @property
    def micro_usd(self) -> int:
        """The total in millionths of a dollar."""
        return sum(line.micro_usd for line in self.lines)

    @property
    def usd(self) -> float:
        """The total in USD, to the millionth."""
        return self.micro_usd / _MICROS_PER_USD

    @property
    def cents(self) -> int:
        """The total in whole cents, half a cent to the even one."""
        return int((Decimal(self.micro_usd) / (_MICROS_PER_USD // 100)).quantize(Decimal(1), ROUND_HALF_EVEN))


def micro_usd(seconds: float, usd_per_hour: float) -> int:
    """Return seconds times rate in millionths of a dollar, computed on the decimal digits of both and rounded once."""
    exact = Decimal(repr(seconds)) * Decimal(repr(usd_per_hour)) * _MICROS_PER_USD / _SECONDS_PER_HOUR
    return int(exact.quantize(Decimal(1), ROUND_HALF_EVEN))


def usd_for(seconds: float, usd_per_hour: float) -> float:
    """Return seconds times rate in USD, rounded to the cent."""
    exact = Decimal(micro_usd(seconds, usd_per_hour)) / _MICROS_PER_USD
    return float(exact.quantize(_CENT, ROUND_HALF_EVEN))


def bill(uses: Iterable[NodeUse]) -> Bill:
    """Return the bill of the machines, a line each in the order given. Raises ValueError for a negative duration."""
    lines = []
    for use in uses:
        if use.seconds < 0:
            raise ValueError(f"node {use.node_id} was billed {use.seconds} seconds; its end is before its start")
        lines.append(BillLine(use.node_id, micro_usd(use.seconds, use.usd_per_hour)))
    return Bill(tuple(lines))
