"""Which of EC2's vCPU quotas a machine counts against: one per kind of family, on demand and spot apart."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Market = Literal["on-demand", "spot"]


class Quota(NamedTuple):
    """A quota of Service Quotas, service code `ec2`, counted in vCPUs for a whole region."""

    code: str
    name: str


_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
# Amazon EC2 user guide, On-Demand and Spot Instance quotas; a family without a row is not checked.
_CODES: dict[str, tuple[str, str, str]] = {
    "standard": (_STANDARD, "L-1216C47A", "L-34B43A08"),
    "g": ("G and VT", "L-DB2E81BA", "L-3819A6DF"),
    "p": ("P", "L-417A185B", "L-7212CCBC"),
    "p5": ("P5", "L-417A185B", "L-C4BD4855"),
    "x": ("X", "L-7295265B", "L-E3A00192"),
    "f": ("F", "L-74FC7D96", "L-88CF9481"),
    "inf": ("Inf", "L-1945791B", "L-B5D1601B"),
    "trn": ("Trn", "L-2C3B7624", "L-6B0D517C"),
    "dl": ("DL", "L-6E869C2A", "L-85EED4F7"),
    "hpc": ("HPC", "L-F7808C92", ""),
    "u": ("High Memory", "L-43DA4232", ""),
}
_KINDS = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), "standard"),
    **dict.fromkeys(("g", "gr", "vt"), "g"),
    **{name: name for name in ("p", "x", "f", "inf", "trn", "dl", "hpc", "u")},
}
_FAMILY = re.compile(r"([a-z]+)(\d*)")


def quota_of(instance_type: str, market: Market) -> Quota | None:
    """Return the quota that `p5.48xlarge` or the like counts against, or None where none is known."""
    family = _FAMILY.match(instance_type)
    kind = _KINDS.get(family[1]) if family else None
    if family is None or kind is None:
        return None
    if market == "on-demand":
        return _quota(kind, f"Running On-Demand {_CODES[kind][0]} instances", 1)
    if kind == "p":
        # Spot has one quota up to the fourth generation and one for the fifth; later ones are not published.
        return _spot("p5" if family[2] == "5" else "p") if family[2] in ("2", "3", "4", "5") else None
    return _spot(kind)


def _spot(kind: str) -> Quota | None:
    return _quota(kind, f"All {_CODES[kind][0]} Spot Instance Requests", 2)


def _quota(kind: str, name: str, column: Literal[1, 2]) -> Quota | None:
    code = _CODES[kind][column]
    return Quota(code, name) if code else None
