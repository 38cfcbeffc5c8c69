"""How numbers read: bytes, rates, durations, instants and money."""

from __future__ import annotations

from datetime import datetime

UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400


def bytes_text(count: float) -> str:
    """Return a number of bytes in decimal units, three digits wide: `75 B`, `1.25 MB`, `134 kB`."""
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(UNITS) - 1:  # noqa: PLR2004  # 999.5 would be shown as 1000
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {UNITS[unit]}"


def rate_text(bytes_per_s: float) -> str:
    """Return a rate: `1.25 MB/s`."""
    return f"{bytes_text(bytes_per_s)}/s"


def duration_text(seconds: float) -> str:
    """Return a duration with its two largest units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 9.95:  # noqa: PLR2004  # 9.95 would be shown as 10.0
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return _two(whole, MINUTE_S, "min", 1, "s")
    if whole < DAY_S:
        return _two(whole, HOUR_S, "h", MINUTE_S, "min")
    return _two(whole, DAY_S, "d", HOUR_S, "h")


def usd_text(usd: float) -> str:
    """Return an amount: cents from one dollar up, four digits below it, so that small runs are not shown as free."""
    return f"{usd:,.2f} USD" if usd >= 1 else f"{usd:.4f} USD"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: `1 file`, `1,797 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock_text(instant: str) -> str:
    """Return the time of day of an ISO 8601 instant as it stands, in UTC: `12:05:09`; the text itself if it is none."""
    try:
        return datetime.fromisoformat(instant).strftime("%H:%M:%S")
    except ValueError:
        return instant


def instant_text(instant: str, day: str) -> str:
    """Return an instant as time of day, with its date when that is another one than the instant `day`'s."""
    return clock_text(instant) if instant[:10] == day[:10] else f"{instant[:10]} {clock_text(instant)}"


def _two(whole: int, large_s: int, large: str, small_s: int, small: str) -> str:
    parts = whole // large_s, whole % large_s // small_s
    return f"{parts[0]} {large} {parts[1]} {small}" if parts[1] else f"{parts[0]} {large}"
