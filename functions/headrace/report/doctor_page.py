"""What a machine can do of the data path, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def doctor_page(found: Mapping[str, Any]) -> RenderableType:
    """Return a line for each ability, and what to do about those that are missing."""
    table = Table.grid(padding=(0, 2))
    for one in found["abilities"]:
        table.add_row("yes" if one["can"] else "no", str(one["name"]), ", ".join(one["missing"]))
    lines: list[RenderableType] = [Text(f"kernel {found['kernel']}, {_rights(found)}"), Text(""), table, Text("")]
    lines.append(Text(f"RDMA device with reliable connections: {found['rdma_device'] or 'none'}"))
    lines.append(Text(f"proves who it is by a key: {_yes(found['keys_shown'])}"))
    lines.append(Text(f"makes others prove who they are: {found['keys_demanded']}"))
    vm = found["virtual_machines"]
    lines.append(Text(f"virtual machines (--nodes vm): {'yes' if vm['can'] else 'no'}{_lacks(vm['missing'])}"))
    if not all(one["can"] for one in found["abilities"]):
        lines += [Text(""), Text(ADVICE)]
    return Group(*lines)


ADVICE = (
    "A missing module comes with another kernel package (Debian: linux-image-amd64, not the cloud kernel; Ubuntu: "
    "linux-modules-extra-aws); programs with mdadm, xfsprogs, nvme-cli, dmsetup and iproute2. Runs on this machine "
    "need none of it: their nodes are processes, or virtual machines with --nodes vm."
)


def _rights(found: Mapping[str, Any]) -> str:
    return "as root" if found["is_root"] else "not as root: nodes configure themselves as root"


def _yes(can: bool) -> str:
    return "yes" if can else "no: the kernel has no NVME_HOST_AUTH, or may not be asked"


def _lacks(missing: list[str]) -> str:
    return f", missing: {', '.join(missing)}" if missing else ""
