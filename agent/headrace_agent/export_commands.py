"""The writes that export slices over NVMe/TCP or NVMe/RDMA, by the kernel's nvmet configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace_agent.actions import Action, Link, Run, Unless, Write
from headrace_agent.config import Export
from headrace_agent.machine import Machine
from headrace_agent.names import address, host_uuid, subsystem_nqn, uuid_text
from headrace_agent.slice_commands import Slice

NVMET = "/sys/kernel/config/nvmet"
SERVICE_PORT = 4420
"""IANA's port for NVMe over Fabrics."""


def export_all(
    exports: Sequence[Export], slices: Mapping[tuple[str, int], Slice], transport: str, machine: Machine
) -> list[Action]:
    """Return the writes for all exports: namespaces, allowed hosts and port, the link that opens the door last.

    `transport` is tcp or rdma. A subsystem never allows any host; a namespace's uuid is set before it is enabled.
    """
    actions: list[Action] = [Run(("mount", "-t", "configfs", "none", "/sys/kernel/config"), _configfs())]
    nqns = list(dict.fromkeys(subsystem_nqn(one.subsystem_nqn) for one in exports))
    for nqn in nqns:
        actions += _subsystem(nqn, [one for one in exports if one.subsystem_nqn == nqn], slices)
    actions += _port(transport, address(machine.address))
    actions += [Link(f"{NVMET}/subsystems/{nqn}", f"{NVMET}/ports/1/subsystems/{nqn}") for nqn in nqns]
    return actions


def _configfs() -> Unless:
    return Unless("mounted", "/sys/kernel/config")


def _subsystem(nqn: str, exports: Sequence[Export], slices: Mapping[tuple[str, int], Slice]) -> list[Action]:
    folder = f"{NVMET}/subsystems/{nqn}"
    actions: list[Action] = [_make(folder), Write(f"{folder}/attr_allow_any_host", "0")]
    for export in exports:
        actions += _namespace(folder, export, slices[export.volume_id, export.slice_index].device)
    hosts = dict.fromkeys(host for export in exports for host in export.allowed_host_nqns if host_uuid(host))
    for host in hosts:
        actions += [_make(f"{NVMET}/hosts/{host}"), Link(f"{NVMET}/hosts/{host}", f"{folder}/allowed_hosts/{host}")]
    return actions


def _namespace(subsystem: str, export: Export, device: str) -> list[Action]:
    folder = f"{subsystem}/namespaces/{export.namespace_id}"
    done = Unless("enabled", f"{folder}/enable")
    return [
        _make(folder),
        Write(f"{folder}/device_path", device, done),
        Write(f"{folder}/device_uuid", uuid_text(export.namespace_uuid), done),
        Write(f"{folder}/enable", "1", done),
    ]


def _port(transport: str, own_address: str) -> list[Action]:
    """Return the writes for port 1; its type cannot change while linked, so a linked port is left alone."""
    folder = f"{NVMET}/ports/1"
    settings = {"trtype": transport, "adrfam": "ipv4", "traddr": own_address, "trsvcid": str(SERVICE_PORT)}
    linked = Unless("exists", f"{folder}/subsystems/*")
    writes: list[Action] = [Write(f"{folder}/addr_{name}", value, linked) for name, value in settings.items()]
    return [_make(folder), *writes]


def _make(folder: str) -> Action:
    return Run(("mkdir", "-p", folder))
