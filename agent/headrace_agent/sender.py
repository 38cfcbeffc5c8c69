"""Sends the outbox to the bus in the background: small batches, patient retries, and a bounded last effort."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from headrace_agent.outbox import Outbox, StoredEvent
from headrace_agent.putevents import BusUnavailable
from headrace_agent.signing import SOURCE

LOG = logging.getLogger(__name__)
ENTRIES_MAX = 10
BATCH_BYTES_MAX = 240 * 1024
"""Below the 256 KB that PutEvents documents, with room for the request around the entries."""

FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 30.0
FLUSH_PAUSE_SECONDS = 0.1


class Bus(Protocol):
    """What the sender needs of an event bus."""

    name: str

    def put(self, entries: Sequence[dict[str, Any]]) -> tuple[str | None, ...]:
        """Send entries; return an error code or None for each; raise BusUnavailable when all failed."""
        ...


def entry_for(event: StoredEvent, bus_name: str) -> dict[str, Any]:
    """Return the PutEvents entry of an event."""
    return {
        "Source": SOURCE,
        "DetailType": event.detail_type,
        "Detail": event.detail,
        "EventBusName": bus_name,
    }


def batch_of(events: Iterable[StoredEvent], bus_name: str) -> list[tuple[StoredEvent, dict[str, Any]]]:
    """Return the longest head of the events that one request may carry; never empty when there is an event."""
    batch: list[tuple[StoredEvent, dict[str, Any]]] = []
    total_bytes = 0
    for event in events:
        entry = entry_for(event, bus_name)
        total_bytes += len(json.dumps(entry).encode())
        if batch and (len(batch) == ENTRIES_MAX or total_bytes > BATCH_BYTES_MAX):
            break
        batch.append((event, entry))
    return batch


def wait_seconds_after(failures: int, chance: random.Random) -> float:
    """Return the pause after that many failures in a row: exponential, with full jitter above a small floor."""
    longest: float = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(failures, 20))
    return FIRST_WAIT_SECONDS / 2 + chance.random() * longest


class Sender:
    """Owns the way from the outbox to the bus; `wake` it after each append."""

    def __init__(self, outbox: Outbox, bus: Bus, chance: random.Random | None = None) -> None:
        self._outbox = outbox
        self._bus = bus
        self._chance = chance or random.Random()  # noqa: S311 - spreads retries, hides nothing
        self._one_at_a_time = threading.Lock()
        self._wake = threading.Event()
        self._flushing = threading.Event()
        self._failures = 0

    def start(self) -> None:
        """Start sending in a thread that ends with the process."""
        threading.Thread(target=self._run, name="sender", daemon=True).start()

    def wake(self) -> None:
        """Say that there is something to send."""
        self._wake.set()

    def flush(self, seconds: float) -> bool:
        """Send all that waits, for at most about that long. Return whether all was sent."""
        self._flushing.set()
        end = time.monotonic() + seconds
        while self._outbox.depth() and time.monotonic() < end:
            if not self._one_at_a_time.acquire(timeout=max(0.0, end - time.monotonic())):
                break
            try:
                taken = self.send_batch()
            finally:
                self._one_at_a_time.release()
            if not taken:
                time.sleep(FLUSH_PAUSE_SECONDS)
        return self._outbox.depth() == 0

    def send_batch(self) -> bool:
        """Send one batch. Return whether all of it was taken; what was not stays in the outbox."""
        batch = batch_of(self._outbox.oldest(ENTRIES_MAX), self._bus.name)
        if not batch:
            return True
        try:
            errors = self._bus.put([entry for _, entry in batch])
        except BusUnavailable as error:
            self._note_failure(str(error))
            return False
        self._outbox.remove(event.sequence for (event, _), error in zip(batch, errors, strict=True) if not error)
        refused = sorted({error for error in errors if error})
        if refused:
            self._note_failure(f"entries were refused: {', '.join(refused)}")
            return False
        self._failures = 0
        return True

    def _note_failure(self, reason: str) -> None:
        self._failures += 1
        if self._failures in (1, 10, 100) or self._failures % 1000 == 0:
            LOG.warning("events wait (%d failures in a row): %s", self._failures, reason)

    def _run(self) -> None:
        while not self._flushing.is_set():
            self._wake.clear()
            with self._one_at_a_time:
                taken = self.send_batch()
            if not taken:
                self._flushing.wait(wait_seconds_after(self._failures, self._chance))
            elif not self._outbox.depth():
                self._wake.wait()
