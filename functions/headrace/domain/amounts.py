"""How amounts are written for people: powers of ten, three digits, units always."""

from __future__ import annotations

_STEPS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_ROUNDS_UP = 0.9995
"""From this share of a unit on, three digits say one of it."""
_MINUTE_S, _HOUR_S = 60, 3600


def bytes_text(amount: float) -> str:
    """Return bytes as people read them, such as `211 TB`."""
    for size, unit in _STEPS:
        if amount >= size * _ROUNDS_UP:
            return f"{amount / size:.3g} {unit}" if amount < 1000 * size else f"{amount / size:,.0f} {unit}"
    return f"{amount:.0f} bytes"


def rate_text(bytes_per_s: float) -> str:
    """Return a rate as people read it, such as `2.86 GB/s`."""
    return f"{bytes_text(bytes_per_s)}/s"


def usd_text(usd: float) -> str:
    """Return an amount of money, such as `1,388.54 USD`."""
    return f"{usd:,.2f} USD" if usd >= 1 else f"{usd:.4f} USD"


def duration_text(seconds: float) -> str:
    """Return a duration, such as `45 s`, `9.5 min` or `6 h`."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.3g} min"
    return f"{seconds / _HOUR_S:.3g} h"
