"""What the simulated cloud truly did, written down by the fakes themselves; it shares no code with what is tested."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.domain.launch import LaunchRequest
from headrace.local.simulated.watcher import Watcher
from headrace.ports import Json, Node

_CALLER = re.compile(r"[A-Z]\w+ for (\S+)")


@dataclass
class MachineRecord:
    """One machine from launch to end; instants are seconds of the simulation."""

    node_id: str
    run_id: str
    role: str
    instance_type: str
    client_token: str
    attempt: int
    launched_s: float
    deadline_s: float
    asked_s: float | None = None
    """When the cloud accepted to end it."""
    configured_s: float | None = None
    started_s: float | None = None
    """When it first said that the job runs."""
    released_s: float | None = None
    released_by: str = ""
    ended_s: float | None = None
    lost_s: float | None = None
    """When it was taken away, or its agent ended for good."""
    said: list[str] = field(default_factory=list)


class Ledger(Watcher):
    """Told by the fakes; `now` gives the seconds of the simulation."""

    def __init__(self, planned: dict[str, int]) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        self.planned = planned
        """How many machines of each role one run is to have at most."""
        self.machines: dict[str, MachineRecord] = {}
        self.objects: dict[tuple[str, str], int] = {}
        self.dataset: frozenset[str] = frozenset()
        """Every key of the data set before a run began."""
        self.keys: list[str] = []
        """Every signing key that was given to a machine."""
        self.began: dict[str, float] = {}
        self.closed: dict[str, tuple[float, str]] = {}
        self.work_ended: dict[str, float] = {}
        """When all compute machines of a run had said that their job had ended, well or not."""
        self.envelopes: list[Mapping[str, Json]] = []
        self.live: dict[tuple[str, str], int] = {}
        self.timeline: list[tuple[float, str, str]] = []
        self.ends: dict[str, dict[str, Json]] = {}
        """Status, receipt and instant that a run's row was first given as its end."""
        self.at_once: list[str] = []
        """What was found wrong while it happened."""

    def launched(self, node: Node, request: LaunchRequest) -> None:
        deadline_s = self.now() + (request.deadline_at - node.launched_at).total_seconds()
        record = MachineRecord(
            node.node_id,
            node.run_id,
            node.role,
            node.instance_type,
            request.client_token,
            request.attempt,
            self.now(),
            deadline_s,
        )
        self.machines[node.node_id] = record
        self.noted(node.node_id, f"launched as {node.role} of {node.run_id}, {node.instance_type}")
        group = (node.run_id, node.role)
        self.live[group] = self.live.get(group, 0) + 1
        if self.live[group] > self.planned[node.role]:
            self.at_once.append(f"two fleets: {self.live[group]} {node.role} machines of {node.run_id} at once")

    def asked(self, node_id: str) -> None:
        record = self.machines[node_id]
        if record.asked_s is None and record.released_s is None:
            record.asked_s = self.now()
            self.live[record.run_id, record.role] -= 1

    def released(self, node_id: str, why: str) -> None:
        record = self.machines[node_id]
        record.released_s, record.released_by = self.now(), why
        record.lost_s = self.now() if why == "reclaimed" else record.lost_s
        if record.asked_s is None:
            self.live[record.run_id, record.role] -= 1
        self.noted(node_id, f"released: {why}")
        caller = _CALLER.fullmatch(why)
        if caller and caller[1] not in (record.run_id, "None"):
            self.at_once.append(f"foreign: {node_id} of {record.run_id} was terminated by {why}")

    def reported(self, run_id: str, end: Mapping[str, Json]) -> None:
        """Note what the run table says of how a run ended."""
        known = self.ends.setdefault(run_id, dict(end))
        if changed := {name: end[name] for name in end if end[name] != known.get(name)}:
            self.at_once.append(f"two ends: {run_id} had ended as {known} and was changed to {changed}")

    def ended(self, node_id: str) -> None:
        self.machines[node_id].ended_s = self.now()

    def stored(self, bucket: str, key: str, body: bytes) -> None:
        self.objects[bucket, key] = len(body)
        if key.endswith("identity.json"):
            self.keys.append(json.loads(body)["hmac_key"])
        if key.endswith("fabric.json"):
            self.keys += [one["key"] for one in json.loads(body)["keys"]]

    def removed(self, bucket: str, key: str) -> None:
        self.objects.pop((bucket, key), None)

    def said(self, node_id: str, detail_type: str) -> None:
        record = self.machines[node_id]
        record.said.append(detail_type)
        if detail_type == "Node Configured" and record.configured_s is None:
            record.configured_s = self.now()
        if detail_type == "Job Started" and record.started_s is None:
            record.started_s = self.now()
        if detail_type in ("Dataset Staged", "Job Started") and "Node Configured" not in record.said:
            self.at_once.append(f"unconfigured: {node_id} says {detail_type} before it was configured")
        if detail_type != "Telemetry Sampled":
            self.noted(node_id, f"says {detail_type}")
        if detail_type in ("Job Done", "Job Failed") and self._have_all_ended(record):
            self.work_ended.setdefault(record.run_id, self.now())

    def _have_all_ended(self, record: MachineRecord) -> bool:
        ended = [one for one in self.of_run(record.run_id) if not {"Job Done", "Job Failed"}.isdisjoint(one.said)]
        return len(ended) >= self.planned["compute"]

    def published(self, envelope: Mapping[str, Json]) -> None:
        self.envelopes.append(envelope)

    def noted(self, actor: str, what: str) -> None:
        if what == "its agent: crash":
            self.machines[actor].lost_s = self.now()
        self.timeline.append((self.now(), actor, what))

    def executed(self, execution_arn: str, status: str) -> None:
        self.noted(execution_arn.partition(":execution:")[2], status)
        if status == "RUNNING":
            self.began[execution_arn] = self.now()
        else:
            self.closed[execution_arn] = (self.now(), status)

    def of_run(self, run_id: str) -> list[MachineRecord]:
        """Return the machines of one run, in order of launch."""
        return [one for one in self.machines.values() if one.run_id == run_id]
