"""The distribution's own kernel for guests: found, fetched, its modules chosen, and unpacked for an emulator."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

from headrace.local.vm.making import VmUnavailable, output, run

KERNEL_PACKAGE = "linux-image-amd64"
"""The full kernel: Debian's cloud kernel has no rdma_rxe."""

GUEST_MODULES = (
    *("virtio_pci", "virtio_net", "virtio_console", "virtio_rng", "nvme", "nvme_fabrics", "nvme_tcp", "nvme_rdma"),
    *("nvmet", "nvmet_tcp", "nvmet_rdma", "rdma_rxe", "configfs", "raid0", "raid1", "raid10", "dm_mod", "dm_flakey"),
    *("xfs", "overlay", "loop", "crc32_generic", "crc32_pclmul", "crc32c_generic", "crc32c_intel", "libcrc32c"),
    *("nvme_auth", "hmac", "sha256_generic", "dh_generic"),
)
"""rdma_rxe asks the kernel's crypto API for crc32, which modprobe does not see as a dependency; so do keys of hosts."""

XZ, ELF = b"\xfd7zXZ\x00", b"\x7fELF"


def kernel_package() -> str:
    """Return the package that the distribution's kernel package depends on, whose name holds the version.

    Raises VmUnavailable.
    """
    for line in output(("apt-cache", "depends", KERNEL_PACKAGE)).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise VmUnavailable(f"apt knows no package {KERNEL_PACKAGE}; run apt-get update as root on Debian 12 or newer")


def unpack_kernel(work: Path, package: str) -> tuple[Path, str]:
    """Fetch the package and unpack it below `work/kernel`. Return the kernel's file and version."""
    run(("apt-get", "download", "-q", package), cwd=work)
    (archive,) = work.glob("linux-image-*.deb")
    run(("dpkg-deb", "-x", str(archive), str(work / "kernel")))
    archive.unlink()
    modules = work / "kernel/lib/modules"
    if not modules.exists():
        (work / "kernel/lib").symlink_to("usr/lib")
    (found,) = modules.iterdir()
    run(("depmod", "-b", str(work / "kernel"), found.name))
    return work / "kernel/boot" / f"vmlinuz-{found.name}", found.name


def uncompressed(kernel: bytes) -> bytes:
    """Return the kernel within a compressed one, or the kernel as it is where that is not packed by xz.

    QEMU starts an uncompressed kernel directly (PVH); where the processor is emulated, unpacking it there takes longer
    than all else that this kernel does before its first process.
    """
    start = kernel.find(XZ)
    if start < 0:
        return kernel
    try:
        unpacked = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(kernel[start:])
    except lzma.LZMAError:
        return kernel
    return unpacked if unpacked.startswith(ELF) else kernel


def take_modules(kernel: Path, version: str, root: Path) -> None:
    """Copy the wanted modules and all that they depend on."""
    target = root / "usr/lib/modules" / version
    target.mkdir(parents=True)
    source = kernel / "lib/modules" / version
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(source / name, target / name)
    for module in GUEST_MODULES:
        shown = output(("modprobe", "-d", str(kernel), "-S", version, "--show-depends", module))
        for line in shown.splitlines():
            if line.startswith("insmod "):
                part = line.split()[1].partition(f"lib/modules/{version}/")[2]
                (target / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source / part, target / part)
    run(("depmod", "-b", str(root), version))
