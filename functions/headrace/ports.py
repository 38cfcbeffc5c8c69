"""What a step needs from a cloud. Every adapter, real, local or simulated, offers exactly this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from headrace.domain.access import BucketAccess
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.launch import LaunchRequest
from headrace.domain.plan import Placement, Role
from headrace.domain.preflight import Findings
from headrace.domain.schedule import Reservation
from headrace.domain.settings import Settings

Json = Any
NodeLife = Literal["pending", "running", "stopping", "terminated"]


@dataclass(frozen=True)
class Node:
    """One machine as the cloud lists it; `address` may be empty while it is pending."""

    node_id: str
    run_id: str
    role: Role
    instance_type: str
    zone: str
    address: str
    life: NodeLife
    launched_at: datetime
    shared_folder: str | None = None
    """Folder that other nodes can read, where nodes share a file system; None on real machines."""
    ended_at: datetime | None = None
    """When it was asked to end or ended by itself, which is when billing stops; None where the cloud does not tell."""
    ended_because: str = ""
    """Why it is stopping or terminated, in the cloud's words; empty where it does not tell."""
    placement: Placement = "one zone"
    """How near it stands to the others: in a cluster placement group, or only in their zone."""


@dataclass(frozen=True)
class LaunchFault:
    """Why some of a launch did not come, by meaning rather than by error code."""

    instance_type: str
    zone: str
    meaning: Literal["capacity", "quota", "denied", "other"]
    message: str


@dataclass(frozen=True)
class LaunchResult:
    """Nodes and faults may come together: a partial fleet is an answer, not an error."""

    nodes: tuple[Node, ...]
    faults: tuple[LaunchFault, ...]


class Fleets(Protocol):
    """Machines: launch, terminate, and the list that is the only truth about them."""

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """Launch `request.count` machines tagged with the run and role."""
        ...

    def terminate(self, node_ids: Sequence[str]) -> tuple[str, ...]:
        """Ask for termination of each; idempotent. Return ids accepted, unknown ones left out. Raises AccessDenied."""
        ...

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        """Return every machine of the run, or of all runs, on all pages, terminated ones included while listed."""
        ...

    def find(self, node_id: str) -> Node | None:
        """Return the machine as a listing shows it; None for another's, and for one that no listing shows."""
        ...


@dataclass(frozen=True)
class CommandStatus:
    """True completion of one document; a machine in none of the three is pending, as just after `send`."""

    succeeded: frozenset[str]
    pending: frozenset[str]
    failed: Mapping[str, str]
    """Node id to the last lines of its output."""


class Nodes(Protocol):
    """Documents run on machines, chosen by run and role, never by lists of ids."""

    def online(self, run_id: str, role: Role) -> frozenset[str]:
        """Return ids of the machines that can take a document now."""
        ...

    def send(self, document: str, run_id: str, role: Role, parameters: Mapping[str, str]) -> str:
        """Start the document on every machine of that run and role. Return the command's id."""
        ...

    def command_status(self, command_id: str) -> CommandStatus:
        """Return how far the command is."""
        ...


class ObjectInfo(NamedTuple):
    """One object as a listing shows it."""

    key: str
    bytes: int
    etag: str
    storage_class: str


@dataclass(frozen=True)
class ObjectPage:
    """One page of a listing; `next_token` is None on the last."""

    objects: tuple[ObjectInfo, ...]
    next_token: str | None


class Objects(Protocol):
    """S3. Every method raises AccessDenied on 403 and ObjectMissing on 404."""

    def get(self, bucket: str, key: str) -> bytes:
        """Return the whole object; for small ones only."""
        ...

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write the whole object."""
        ...

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """Return size and ETag."""
        ...

    def delete(self, bucket: str, key: str) -> None:
        """Remove the object; an absent one is success."""
        ...

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return one page of the raw listing below the prefix, in key order."""
        ...

    def abort_uploads(self, bucket: str, prefix: str) -> int:
        """Remove the parts of every upload that was begun below the prefix and not completed; return how many."""
        ...

    def try_upload(self, bucket: str, key: str) -> None:
        """Begin an upload in parts and abort it: writing is tried, and no object, version or event comes of it."""
        ...


class Elsewhere(Protocol):
    """Buckets of other accounts and of S3s that are not AWS's."""

    def objects(self, access: BucketAccess, run_id: str) -> Objects:
        """Return its S3 with keys fetched now, and kept nowhere. Raises AccessDenied, saying what to change."""
        ...


class Bus(Protocol):
    """The event bus."""

    def put(self, source: str, detail_type: str, detail: Mapping[str, Json]) -> None:
        """Publish one event; failed entries are sent again a bounded number of times."""
        ...


class Runs(Protocol):
    """The run table: items keyed by run, kind and name, each changed by conditional writes only."""

    def insert(self, run_id: str, kind: str, name: str, item: Mapping[str, Json]) -> bool:
        """Write a new item. Return False, changing nothing, when the key is taken."""
        ...

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Json] | None:
        """Return the item as last written (a consistent read), or None."""
        ...

    def update(
        self, run_id: str, kind: str, name: str, changes: Mapping[str, Json], expecting: Mapping[str, Json]
    ) -> bool:
        """Set the fields of `changes` if the item exists and each field of `expecting` has that value.

        None expects an absent or null field. Return False, changing nothing, otherwise. A request that was sent again
        because its answer was lost may return False though the first one made the change: read before acting on it.
        """
        ...

    def delete(self, run_id: str, kind: str, name: str) -> None:
        """Remove the item; an absent one is success."""
        ...

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Json], ...]:
        """Return every item of that kind, on all pages, ordered by name."""
        ...

    def run_ids(self) -> Iterator[str]:
        """Yield every run id known, newest first."""
        ...


class Executions(Protocol):
    """State machine executions and their task tokens."""

    def start(self, machine: str, name: str, given: Mapping[str, Json]) -> str:
        """Start an execution; the same name and input again is the same execution. Return its ARN."""
        ...

    def stop(self, execution_arn: str, cause: str) -> None:
        """Abort the execution; on a closed one, do nothing."""
        ...

    def is_running(self, execution_arn: str) -> bool:
        """Tell whether the execution is still open; an unknown one is not."""
        ...

    def succeed(self, token: str, output: Mapping[str, Json]) -> bool:
        """Complete a waiting task. Return False when the token no longer waits, which means already done."""
        ...

    def fail(self, token: str, error: str, cause: str) -> bool:
        """Fail a waiting task. Return False as `succeed` does."""
        ...

    def heartbeat(self, token: str) -> bool:
        """Say that the waiting task is alive. Return False as `succeed` does."""
        ...


class Prices(Protocol):
    """What machines are and cost."""

    def catalog(self, region: str) -> Catalog:
        """Return the machine types offered in the region, with the date of the data."""
        ...

    def price_list(self, region: str) -> PriceList:
        """Return list prices in USD per hour for the region."""
        ...


class Checks(Protocol):
    """Asking, before money is spent, whether it would be spent in vain."""

    def reservation(self, reservation_id: str) -> Reservation | None:
        """Return how it stands, or None where there are none. Raises InfeasibleJob."""
        ...

    def look(self, requests: Sequence[LaunchRequest], quota_codes: Sequence[str]) -> Findings:
        """Return how these quotas stand, and what else would make the launches fail."""
        ...

    def try_launches(self, requests: Sequence[LaunchRequest]) -> tuple[str, ...]:
        """Ask for each launch without carrying it out. Return what policies refuse, in words."""
        ...

    def try_terminate(self, node_ids: Sequence[str]) -> str | None:
        """Ask for the end of machines without carrying it out. Return why a policy refuses it, or None."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the current instant, in UTC and aware of it."""
        ...


class Entropy(Protocol):
    """Randomness for keys."""

    def token_hex(self, size_bytes: int) -> str:
        """Return that many random bytes in hexadecimal."""
        ...


@dataclass(frozen=True)
class Cloud:
    """All ports together; what every handler is given."""

    fleets: Fleets
    nodes: Nodes
    objects: Objects
    bus: Bus
    runs: Runs
    executions: Executions
    prices: Prices
    clock: Clock
    entropy: Entropy
    settings: Settings
    checks: Checks
    elsewhere: Elsewhere
