"""Time and randomness of this machine, behind the ports that handlers draw them from."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


class SystemClock:
    """The Clock port."""

    def now(self) -> datetime:
        """Return the current instant, in UTC and aware of it."""
        return datetime.now(UTC)


class SystemEntropy:
    """The Entropy port, from the operating system's generator."""

    def token_hex(self, size_bytes: int) -> str:
        """Return that many random bytes in hexadecimal."""
        return secrets.token_hex(size_bytes)
