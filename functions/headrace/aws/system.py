"""Time and randomness of the machine that a function runs on, which AWS keeps in step and supplies with entropy."""

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
