"""What this machine can do of the data path: modules, programs, devices, each found by asking for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace_agent.config import NodeConfig
from headrace_agent.machine import NVMET, can_load, can_show_keys, rdma_device

BASE_MODULES = ("dm-mod", "raid0", "xfs")
STORAGE_MODULES = {"tcp": ("nvmet", "nvmet-tcp"), "roce": ("nvmet", "nvmet-rdma")}
READER_MODULES = {"tcp": ("nvme-fabrics", "nvme-tcp"), "roce": ("nvme-fabrics", "nvme-rdma")}
SOFT_ROCE_MODULE, SEALING_MODULE, MERGING_MODULE = "rdma_rxe", "dm-flakey", "overlay"
BASE_PROGRAMS = ("modprobe", "mdadm", "mkfs.xfs", "mount", "umount", "blkid", "blockdev", "wipefs", "dmsetup")
SYSTEM_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
ABILITIES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cut and stripe disks": ((*BASE_MODULES, "raid1", "raid10"), BASE_PROGRAMS),
    "serve over NVMe/TCP": (STORAGE_MODULES["tcp"], ()),
    "serve over NVMe/RoCE": (STORAGE_MODULES["roce"], ()),
    "read over NVMe/TCP": (READER_MODULES["tcp"], ("nvme",)),
    "read over NVMe/RoCE": (READER_MODULES["roce"], ("nvme",)),
    "RoCE in software": ((SOFT_ROCE_MODULE,), ("rdma",)),
    "seal so that no remote host can undo it": ((SEALING_MODULE,), ("dmsetup",)),
    "merge volumes into one folder": ((MERGING_MODULE,), ("mount",)),
}
"""What there is to do, the modules it needs, and the programs."""


def needs(config: NodeConfig, has_rdma_device: bool) -> tuple[list[str], list[str]]:
    """Return the modules and the programs without which this node cannot be what its configuration says."""
    modules, programs = list(BASE_MODULES), list(BASE_PROGRAMS)
    modules += sorted({f"raid{one.raid_level}" for one in config.volumes if one.raid_level})
    if config.exports:
        modules += STORAGE_MODULES.get(config.fabric, ())
    if config.imports or config.copies:
        modules += READER_MODULES.get(config.fabric, ())
        programs.append("nvme")
    if config.fabric == "roce" and (config.exports or config.imports) and not has_rdma_device:
        modules.append(SOFT_ROCE_MODULE)
        programs.append("rdma")
    if config.role == "compute" and sum(one.kind == "dataset" for one in config.volumes) > 1:
        modules.append(MERGING_MODULE)
    return modules, programs


def missing(
    config: NodeConfig,
    *,
    has_rdma_device: bool,
    has_module: Callable[[str], bool] = can_load,
    has_program: Callable[[str], bool] | None = None,
) -> list[str]:
    """Return what this node lacks, in words."""
    modules, programs = needs(config, has_rdma_device)
    found = has_program or is_installed
    return [
        *_no_device(config, has_rdma_device),
        *(f"the kernel {os.uname().release} has no module {one}" for one in modules if not has_module(one)),
        *(f"the program {one} is not installed" for one in programs if not found(one)),
    ]


def _no_device(config: NodeConfig, has_rdma_device: bool) -> list[str]:
    """Return why RoCE cannot be had, where the machine has no device for it and nobody asked for it in software."""
    if config.fabric != "roce" or config.soft_roce or has_rdma_device:
        return []
    return ["it has no RDMA device with reliable connections as the run's other machines have (fabric: auto)"]


def is_installed(program: str) -> bool:
    """Tell whether a program can be found, also where only root looks."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS))
    return shutil.which(program, path=path) is not None


def report(system: Path = Path("/sys"), nvmet: Path = NVMET) -> dict[str, Any]:
    """Return all that this machine can and cannot do, for a person and for programs."""
    return {
        "kernel": os.uname().release,
        "is_root": os.geteuid() == 0,
        "rdma_device": rdma_device(system),
        "keys_shown": can_show_keys(),
        "keys_demanded": _demands_keys(system, nvmet),
        "abilities": [_ability(name, *wanted) for name, wanted in ABILITIES.items()],
    }


def _ability(name: str, modules: tuple[str, ...], programs: tuple[str, ...]) -> dict[str, Any]:
    lacks = [f"module {one}" for one in modules if not can_load(one)]
    lacks += [f"program {one}" for one in programs if not is_installed(one)]
    return {"name": name, "can": not lacks, "missing": lacks}


def _demands_keys(system: Path, nvmet: Path) -> str:
    """Return whether hosts would have to prove who they are (DH-HMAC-CHAP), which only a target that is up shows."""
    if not (system / "module/nvmet").exists():
        return "unknown: nvmet is not loaded"
    hosts = sorted((nvmet / "hosts").glob("*"))
    if not hosts:
        return "unknown: no host is known to the target yet"
    return "yes" if (hosts[0] / "dhchap_key").exists() else "no: this kernel was built without NVME_TARGET_AUTH"
