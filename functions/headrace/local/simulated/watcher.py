"""Who is told what the simulated cloud truly did, whatever its answers said."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.domain.launch import LaunchRequest
from headrace.ports import Json, Node


class Watcher:
    """Told by the fakes themselves; this one forgets everything."""

    def launched(self, node: Node, request: LaunchRequest) -> None:
        """Note that a machine exists and is billed from now on."""

    def asked(self, node_id: str) -> None:
        """Note that the cloud accepted to end a machine, which may go on for a while."""

    def released(self, node_id: str, why: str) -> None:
        """Note that a machine is on its way out: it is billed no longer, and nothing brings it back."""

    def ended(self, node_id: str) -> None:
        """Note that a machine is gone."""

    def stored(self, bucket: str, key: str, body: bytes) -> None:
        """Note that an object is there."""

    def removed(self, bucket: str, key: str) -> None:
        """Note that an object is not there any more."""

    def said(self, node_id: str, detail_type: str) -> None:
        """Note that an agent sent an event, which may or may not arrive."""

    def published(self, envelope: Mapping[str, Json]) -> None:
        """Note an event that the bus took, of whatever source."""

    def noted(self, actor: str, what: str) -> None:
        """Note what a person who reads a timeline wants to see."""

    def executed(self, execution_arn: str, status: str) -> None:
        """Note that an execution began or ended."""
