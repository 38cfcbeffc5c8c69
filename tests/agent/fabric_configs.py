"""Configurations of nodes on a fabric, and machines for them, for tests of the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace_agent.config import NodeConfig, parse_config
from headrace_agent.machine import Disk, Machine
from tests.agent.surroundings import config, volume

HOSTS = [f"nqn.2014-08.org.nvmexpress:uuid:{digit * 8}-1111-5111-8111-111111111111" for digit in "ab"]
FILLER = "nqn.2014-08.org.nvmexpress:uuid:cccccccc-1111-5111-8111-111111111111"
SECTORS = 3_662_109_375
VOLUMES, DATA = Path("/var/lib/headrace/volumes"), Path("/data")
SEALED = frozenset({"headrace-v0-0-0", "headrace-v0-0-1"})
ARRAYS = {f"v{digit}": f"{digit}" * 8 + "-2222-5333-8444-555555555555" for digit in range(10)}


def machine(disks: int, **facts: Any) -> Machine:
    """Return a machine with that many blank disks, and what else is known of it."""
    named = tuple(Disk(f"/dev/nvme{number}n1", SECTORS) for number in range(1, disks + 1))
    return Machine(named, "ens5", "10.0.1.5", **facts)


def uuid_of(volume_id: str, member: int, number: int = 0) -> str:
    """Return the UUID of a slice."""
    return f"{int(volume_id[1:]):08d}-{member:04d}-5000-8000-{number:012d}"


def sealed(member: int) -> str:
    return f"nqn.2026-01.io.headrace:run-1:sealed-{member}"


def filling(volume_id: str, member: int) -> str:
    return f"nqn.2026-01.io.headrace:run-1:filling-{volume_id}-{member}"


def part(volume_id: str, member: int, number: int = 0) -> dict[str, Any]:
    """Return one slice of a configuration."""
    return {
        "name": f"{volume_id}-{member}-{number}",
        "namespace_uuid": uuid_of(volume_id, member, number),
        "array_uuid": ARRAYS[volume_id],
    }


def export(volume_id: str, member: int, number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return one export of a configuration, of a slice once it is sealed."""
    return {
        "subsystem_nqn": sealed(member),
        "namespace_id": number + 1,
        "namespace_uuid": uuid_of(volume_id, member, number),
        "phase": "sealed",
        "allowed_host_nqns": HOSTS,
        "controller_id_min": 1,
        "controller_id_max": 32_000,
    } | changes


def imported(nqn: str, address: str, volume_ids: list[str]) -> dict[str, Any]:
    """Return one import of a configuration."""
    return {
        "node_id": f"node-at-{address}",
        "address": address,
        "service_port": 4420,
        "subsystem_nqn": nqn,
        "volume_ids": volume_ids,
        "queues": 12,
        "keep_alive_seconds": 5,
        "reconnect_seconds": 2,
        "fast_fail_seconds": 30,
        "loss_seconds": 600,
        "shared_folder": None,
    }


def of(volume_id: str, slices: list[str], **changes: Any) -> dict[str, Any]:
    """Return one volume of a configuration, on those slices."""
    made = {
        "array_uuid": ARRAYS[volume_id],
        "filesystem_uuid": f"{volume_id[1:] * 8}-bbbb-5ccc-8ddd-eeeeeeeeeeee",
        "slices": slices,
        "members": len(slices),
    }
    return volume(volume_id, **made | changes)


def read(**changes: Any) -> NodeConfig:
    return parse_config(json.dumps(config(**changes)))


def storage(**changes: Any) -> NodeConfig:
    """Return a storage node that fills volume v0, spread over its two disks."""
    given = {
        "role": "storage",
        "volumes": [of("v0", [uuid_of("v0", 0, 0), uuid_of("v0", 0, 1)], stripe_unit_bytes=524288)],
        "slices": [part("v0", 0, 0), part("v0", 0, 1)],
        "exports": [export("v0", 0, 0), export("v0", 0, 1)],
    }
    return read(**given | changes)


def striped_filler(**changes: Any) -> NodeConfig:
    """Return the storage node that fills v1, of which it and another hold a slice each."""
    given = {
        "volumes": [of("v1", [uuid_of("v1", 0), uuid_of("v1", 1)])],
        "slices": [part("v1", 0)],
        "exports": [export("v1", 0)],
        "imports": [imported(filling("v1", 1), "10.0.1.2", ["v1"])],
    }
    return storage(**given | changes)


def striped_member(**changes: Any) -> NodeConfig:
    """Return the storage node that holds the other slice of v1 and fills nothing."""
    door: dict[str, Any] = {"subsystem_nqn": filling("v1", 1), "phase": "filling", "allowed_host_nqns": [FILLER]}
    given = {
        "volumes": [],
        "slices": [part("v1", 1)],
        "exports": [export("v1", 1, **door), export("v1", 1)],
    }
    return storage(**given | changes)


def mirror_holder(**changes: Any) -> NodeConfig:
    """Return a storage node that fills v0 and holds a copy of v2, which another node fills."""
    other = {"controller_id_min": 32_001, "controller_id_max": 64_000}
    given = {
        "volumes": [of("v0", [uuid_of("v0", 0)])],
        "slices": [part("v0", 0), part("v2", 1)],
        "exports": [export("v0", 0), export("v2", 1, **other)],
        "copies": [
            {
                "namespace_uuid": uuid_of("v2", 1),
                "address": "10.0.1.2",
                "service_port": 4420,
                "subsystem_nqn": sealed(1),
            }
        ],
    }
    return storage(**given | changes)


def compute(**changes: Any) -> NodeConfig:
    """Return a compute node that reads v0 and v1 and has two disks of its own for scratch."""
    given = {
        "volumes": [
            of("v0", [uuid_of("v0", 0)], hydrated_here=False),
            of("v1", [uuid_of("v1", 1)], hydrated_here=False),
            of("v9", [], kind="scratch", hydrated_here=False, members=2),
        ],
        "imports": [imported(sealed(0), "10.0.1.1", ["v0"]), imported(sealed(1), "10.0.1.2", ["v1"])],
    }
    return read(**given | changes)


def mirrored_scratch(**changes: Any) -> NodeConfig:
    """Return a compute node with a private volume whose every byte lies on two storage nodes."""
    slices = [uuid_of("v5", member, number) for number in (0, 1) for member in (0, 1)]
    nqn = "nqn.2026-01.io.headrace:run-1:private-c0"
    given = {
        "volumes": [of("v5", slices, kind="scratch", hydrated_here=False, raid_level=10)],
        "imports": [imported(f"{nqn}-{member}", f"10.0.1.{member + 1}", ["v5"]) for member in (0, 1)],
    }
    return read(**given | changes)
