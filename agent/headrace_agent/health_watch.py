"""Looks now and then whether what this node uses over the fabric is really there, and keeps the answer at hand."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from headrace_agent.config import NodeConfig, parse_config
from headrace_agent.fields import ConfigError
from headrace_agent.health import troubles
from headrace_agent.text import short

LOG = logging.getLogger(__name__)
PERIOD_SECONDS = 30.0
MEMBERS_AT_ONCE = 32
"""Members read in one round; more take turns, so that probing hundreds costs no more than these."""

TOLD_MAX = 5
LINE_CHARACTERS = 240


class HealthWatch:
    """Probes in a thread of its own, since the kernel may hold on to whoever asks; `told` is what the last round found.

    What to probe is in the file that `configured` names, for as long as the node is configured.
    """

    def __init__(self, configured: Path, volumes: Path) -> None:
        self._configured = configured
        self._volumes = volumes
        self._round = 0
        self.told: tuple[str, ...] = ()

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="health", daemon=True).start()

    def look(self) -> None:
        """Probe once; what changed is logged. Raises OSError or ConfigError when that cannot be told."""
        found: list[str] = []
        if self._configured.exists():
            config = parse_config(self._configured.read_bytes())
            found = troubles(config, self._volumes, self._turn(config))
        told = tuple(short(one, LINE_CHARACTERS) for one in found[:TOLD_MAX])
        if told != self.told:
            LOG.warning("health: %s", "; ".join(found) or "all is well again")
        self.told = told

    def _turn(self, config: NodeConfig) -> frozenset[str]:
        """Return the members whose turn it is."""
        members = sorted({uuid for one in config.volumes for uuid in one.slices})
        start = self._round * MEMBERS_AT_ONCE % max(1, len(members))
        self._round += 1
        return frozenset((members * 2)[start : start + MEMBERS_AT_ONCE])

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(PERIOD_SECONDS):
            try:
                self.look()
            except (OSError, ConfigError):
                LOG.exception("cannot tell how the node is")
