"""The writes that export slices over NVMe/TCP or NVMe/RDMA, by the kernel's nvmet configuration, and take them back."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace_agent.actions import Action, Await, Link, Run, Unless, Write
from headrace_agent.config import Export
from headrace_agent.machine import Machine
from headrace_agent.names import host_uuid, subsystem_nqn, uuid_text
from headrace_agent.slices import Slice

NVMET = "/sys/kernel/config/nvmet"
PORT = f"{NVMET}/ports/1"
SERVICE_PORT = 4420
"""IANA's port for NVMe over Fabrics."""

MODEL = "headrace"
SERIAL_DIGITS = 20
"""Longest serial number of an NVMe subsystem."""

STILL_SECONDS = 30


def export_all(exports: Sequence[Export], slices: Mapping[str, Slice], machine: Machine) -> list[Action]:
    """Return the writes for these exports: namespaces, admitted hosts, and the link that opens the door last.

    A subsystem never admits any host. A host that it admits and that is not listed is fenced: denied, its connection
    cut, and its last writes waited for, before the door opens again.
    """
    actions: list[Action] = []
    for nqn in dict.fromkeys(subsystem_nqn(one.subsystem_nqn) for one in exports):
        chosen = [one for one in exports if one.subsystem_nqn == nqn]
        actions += _subsystem(nqn, chosen, slices, machine.served.get(nqn, frozenset()))
    return actions


def open_port(transport: str, machine: Machine) -> list[Action]:
    """Return the writes for port 1; the kernel refuses another address or type while a subsystem is linked to it."""
    settings = {"trtype": transport, "adrfam": "ipv4", "traddr": machine.address, "trsvcid": str(SERVICE_PORT)}
    return [
        Run(("mount", "-t", "configfs", "none", "/sys/kernel/config"), Unless("mounted", "/sys/kernel/config")),
        _make(PORT),
        *(_set(f"{PORT}/addr_{name}", value) for name, value in settings.items()),
    ]


def withdraw(exports: Sequence[Export]) -> list[Action]:
    """Return what ends these exports for good: hosts denied and cut off, then subsystems removed."""
    actions: list[Action] = []
    for nqn in dict.fromkeys(subsystem_nqn(one.subsystem_nqn) for one in exports):
        chosen = [one for one in exports if one.subsystem_nqn == nqn]
        hosts = sorted({host for one in chosen for host in one.allowed_host_nqns})
        numbers = [one.namespace_id for one in chosen]
        actions += remove_subsystem(nqn, hosts, numbers)
    return actions


def remove_subsystem(nqn: str, hosts: Sequence[str], namespace_ids: Sequence[int]) -> list[Action]:
    """Return what removes a subsystem: deny, unlink, then all that it holds."""
    folder = f"{NVMET}/subsystems/{nqn}"
    namespaces = [f"{folder}/namespaces/{number}" for number in namespace_ids]
    actions: list[Action] = [*(_deny(folder, host) for host in hosts), _unlink(nqn)]
    actions += [Write(f"{one}/enable", "0", Unless("absent", one)) for one in namespaces]
    return actions + [Run(("rmdir", one), Unless("absent", one)) for one in (*namespaces, folder)]


def _subsystem(
    nqn: str, exports: Sequence[Export], slices: Mapping[str, Slice], admitted: frozenset[str]
) -> list[Action]:
    folder = f"{NVMET}/subsystems/{nqn}"
    hosts = list(dict.fromkeys(host for one in exports for host in one.allowed_host_nqns if host_uuid(host)))
    devices = [slices[one.namespace_uuid].device for one in exports]
    fenced = fence(nqn, sorted(admitted - set(hosts)), devices)
    identity = _identity(folder, nqn, exports[0])
    namespaces = [action for one in exports for action in _namespace(folder, one, slices[one.namespace_uuid].device)]
    admissions: list[Action] = []
    for host in hosts:
        admissions += [
            _make(f"{NVMET}/hosts/{host}"),
            _demand_key(host),
            Link(f"{NVMET}/hosts/{host}", f"{folder}/allowed_hosts/{host}"),
        ]
    return [*fenced, *identity, *namespaces, *admissions, Link(folder, f"{PORT}/subsystems/{nqn}")]


def fence(nqn: str, hosts: Sequence[str], devices: Sequence[str]) -> list[Action]:
    """Return what cuts hosts off from a subsystem, or nothing without hosts.

    A live connection outlives the removal of its host's name, and only unlinking the port ends it (measured); the
    link comes back with the rest of the configuration, when the devices' write counts stand still.
    """
    if not hosts:
        return []
    folder = f"{NVMET}/subsystems/{nqn}"
    still: list[Action] = [Await(Unless("still", one), STILL_SECONDS) for one in devices]
    return [*(_deny(folder, host) for host in hosts), _unlink(nqn), *still]


def _identity(folder: str, nqn: str, export: Export) -> list[Action]:
    """Return what names the subsystem by its bytes, so that a copy elsewhere is a second path to the same namespaces.

    Controller ids of the two may not overlap; the maximum is written first, since it may not be below the minimum.
    The kernel refuses another serial number or model once a host has seen them.
    """
    serial = uuid.uuid5(uuid.NAMESPACE_OID, nqn).hex[:SERIAL_DIGITS]
    return [
        _make(folder),
        _set(f"{folder}/attr_allow_any_host", "0"),
        _set(f"{folder}/attr_serial", serial),
        _set(f"{folder}/attr_model", MODEL),
        _set(f"{folder}/attr_cntlid_max", str(export.controller_id_max)),
        _set(f"{folder}/attr_cntlid_min", str(export.controller_id_min)),
    ]


def _namespace(subsystem: str, export: Export, device: str) -> list[Action]:
    folder = f"{subsystem}/namespaces/{export.namespace_id}"
    done = Unless("reads", f"{folder}/enable=1")
    identity = uuid_text(export.namespace_uuid)
    return [
        _make(folder),
        Write(f"{folder}/device_path", device, done),
        Write(f"{folder}/device_uuid", identity, done),
        Write(f"{folder}/device_nguid", identity, done),
        Write(f"{folder}/enable", "1", done),
    ]


def _demand_key(host: str) -> Action:
    """Return the write after which the host is admitted only if it proves that it has the key, where kernels can."""
    path = f"{NVMET}/hosts/{host}/dhchap_key"
    return Write(path, f"key({host})", Unless("absent", path))


def demands_keys() -> bool:
    """Tell whether this kernel makes the hosts that it admits prove who they are."""
    return any(Path(NVMET, "hosts").glob("*/dhchap_key"))


def _deny(subsystem: str, host: str) -> Action:
    link = f"{subsystem}/allowed_hosts/{host}"
    return Run(("rm", link), Unless("absent", link))


def _unlink(nqn: str) -> Action:
    link = f"{PORT}/subsystems/{nqn}"
    return Run(("rm", link), Unless("absent", link))


def _set(path: str, value: str) -> Action:
    return Write(path, value, Unless("reads", f"{path}={value}"))


def _make(folder: str) -> Action:
    return Run(("mkdir", "-p", folder), Unless("exists", folder))
