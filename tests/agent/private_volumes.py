"""Nodes of a run with a private scratch volume, and all that is done to make it, use it and salvage it."""

from __future__ import annotations

from typing import Any

from headrace_agent.actions import Action
from headrace_agent.config import NodeConfig
from headrace_agent.leftovers import Served
from headrace_agent.node_commands import compute_actions, storage_actions
from headrace_agent.salvage_commands import Salvage, salvage_of
from headrace_agent.seal_commands import seal_actions
from tests.agent.fabric_configs import (
    DATA,
    HOSTS,
    SEALED,
    VOLUMES,
    export,
    imported,
    machine,
    of,
    part,
    read,
    sealed,
    storage,
    uuid_of,
)

PRIVATE_PPM = 1_500


def private(host: str) -> str:
    return f"nqn.2026-01.io.headrace:run-1:private-{host}"


def private_holder(**changes: Any) -> NodeConfig:
    """Return a storage node that fills v0 and holds v5, the scratch volume of one compute node alone."""
    door: dict[str, Any] = {"subsystem_nqn": private("c0"), "phase": "always", "allowed_host_nqns": HOSTS[:1]}
    given = {
        "slices": [
            *(part("v0", 0, number) for number in (0, 1)),
            *(part("v5", 0, number) | {"share_ppm": PRIVATE_PPM} for number in (0, 1)),
        ],
        "exports": [
            *(export("v0", 0, number) for number in (0, 1)),
            *(export("v5", 0, number, **door) for number in (0, 1)),
        ],
        "kept_ppm": PRIVATE_PPM,
    }
    return storage(**given | changes)


def scratch_of_c0() -> dict[str, Any]:
    """Return the scratch volume v5 of the configurations that name it."""
    return of("v5", [uuid_of("v5", 0, number) for number in (0, 1)], kind="scratch", hydrated_here=False)


def private_reader(**changes: Any) -> NodeConfig:
    """Return the compute node that reads v0 and has v5 for itself, both of one storage node."""
    given = {
        "volumes": [
            of("v0", [uuid_of("v0", 0, number) for number in (0, 1)], hydrated_here=False, stripe_unit_bytes=524288),
            scratch_of_c0(),
        ],
        "imports": [
            imported(sealed(0), "10.0.1.1", ["v0"]),
            imported(private("c0"), "10.0.1.1", ["v5"]),
        ],
    }
    return read(**given | changes)


def salvager(**changes: Any) -> NodeConfig:
    """Return the storage node that holds v5 when the compute node that had it is gone."""
    left = {
        "node_id": "node-c0",
        "attempt": 1,
        "node_rank": 0,
        "volume": scratch_of_c0(),
        "subsystem_nqn": private("c0"),
        "results_bucket": "experiments",
        "results_prefix": "out/",
    }
    exports = [export("v0", 0, number) for number in (0, 1)]
    return private_holder(**{"exports": exports, "salvage": {"left": [left], "results_grace_seconds": 60.0}} | changes)


def salvage(served: Served | None, **changes: Any) -> Salvage:
    """Return what salvages v5 on the machine that holds it."""
    config = salvager(**changes)
    assert config.salvage
    return salvage_of(config.salvage.left[0], config, machine(2, sealed=SEALED, filled=SEALED), served, VOLUMES / "v5")


SERVED_TO_C0 = {private("c0"): frozenset(HOSTS[:1])}


PRIVATE_SETS: dict[str, list[Action]] = {
    "storage-private": storage_actions(private_holder(), machine(2), VOLUMES),
    "storage-private-again-when-sealed": storage_actions(
        private_holder(), machine(2, sealed=SEALED, filled=SEALED, served=SERVED_TO_C0), VOLUMES
    ),
    "seal-private": seal_actions(private_holder(), machine(2, served=SERVED_TO_C0), VOLUMES),
    "compute-private": compute_actions(private_reader(), machine(0), VOLUMES, DATA),
    "salvage": salvage(Served(private("c0"), tuple(HOSTS[:1]), (1, 2))).actions(),
}
