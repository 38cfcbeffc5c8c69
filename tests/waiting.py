"""Waiting for real processes: for a condition, with a deadline, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 30.0


def wait_until(condition: Callable[[], object], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Return once the condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + patience_seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not true within {patience_seconds} s: {condition}")
        pause.wait(0.02)
