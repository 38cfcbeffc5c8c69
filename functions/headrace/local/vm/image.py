"""The guest image: the distribution's own kernel and programs in one initial file system, kept by package versions."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.local.vm import guest_kernel
from headrace.local.vm.accelerator import accelerator
from headrace.local.vm.guest_kernel import kernel_package, take_modules, uncompressed, unpack_kernel
from headrace.local.vm.making import VmUnavailable, alone, output, pack, run

HOST_PACKAGES = ("qemu-system-x86", "mmdebstrap", "cpio", "kmod", "ipxe-qemu", "seabios")
HOST_PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "cpio", "depmod", "apt-get", "dpkg-deb")
GUEST_PACKAGES = (
    *("busybox-static", "bash", "coreutils", "util-linux", "mount", "nvme-cli", "mdadm", "xfsprogs", "iproute2"),
    *("kmod", "dmsetup", "qemu-guest-agent", "procps", "grep", "sed", "gawk", "findutils", "python3"),
)
LEFT_OUT = (
    *("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info", "usr/share/perl", "usr/share/perl5"),
    *("usr/share/bash-completion", "usr/share/zsh", "usr/share/i18n", "usr/lib/udev/hwdb.d", "var/lib/apt", "boot"),
    "usr/lib/x86_64-linux-gnu/libicu*",
    *("var/lib/dpkg", "var/cache", "usr/games", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/perl-base"),
)
INIT = Path(__file__).with_name("init.sh")
KERNEL, FILES, ROOT, VERSION = "vmlinux", "guest.cpio", "root", "version"


@dataclass(frozen=True)
class Image:
    """What QEMU starts: a kernel, and the guest's whole file system as cpio archives that are loaded one on another."""

    kernel: Path
    layers: tuple[Path, ...]
    root: Path
    """The guest's files as a folder, for running its programs here."""

    kernel_version: str
    accelerator: str
    """QEMU's word for what guests run on: this machine's KVM, or emulation."""


def missing_programs() -> tuple[str, ...]:
    """Return the programs that building and running guests needs and that are not installed."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return tuple(one for one in HOST_PROGRAMS if shutil.which(one, path=path) is None)


def build_image(folder: Path, say: Callable[[str], object]) -> Image:
    """Return the guest image below the folder, built when the packages of the distribution changed or none is there.

    Raises VmUnavailable.
    """
    if missing := missing_programs():
        raise VmUnavailable(
            f"virtual machines need {', '.join(missing)}, not found here. Install them as root: apt-get update && "
            f"apt-get install --no-install-recommends {' '.join(HOST_PACKAGES)}"
        )
    package = kernel_package()
    place = folder / f"image-{_key(package)}"
    with alone(folder):
        if not (place / FILES).exists():
            say(f"building the guest image with {package} in {place}")
            _build(place, package)
        version = (place / VERSION).read_text().strip()
        kernel = place / KERNEL
        return Image(kernel, (place / FILES,), place / ROOT, version, accelerator(kernel, folder))


def compile_python(root: Path, library: Path, top: Path) -> None:
    """Compile a folder by the Python of the guest's files: emulated, that takes long. `top` is where it will be `/`."""
    interpreter = next((root / "usr/bin").glob("python3.*"))
    loader = (str(root / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(root / "usr/lib/x86_64-linux-gnu"))
    how = ("-q", "--invalidation-mode", "unchecked-hash", "-s", str(top), "-p", "/")
    run((*loader, str(interpreter), "-I", "-m", "compileall", *how, str(library)))


def _key(package: str) -> str:
    policy = output(("apt-cache", "policy", package, *GUEST_PACKAGES))
    kept = [line.strip() for line in policy.splitlines() if not line.startswith(" ") or "Candidate" in line]
    made_by = [Path(one).read_text() for one in (__file__, guest_kernel.__file__)]
    return hashlib.sha256("\n".join((*kept, INIT.read_text(), *made_by)).encode()).hexdigest()[:16]


def _build(place: Path, package: str) -> None:
    work = place.with_name(f"{place.name}.tmp")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    compressed, version = unpack_kernel(work, package)
    root = work / ROOT
    _unpack_packages(root)
    take_modules(work / "kernel", version, root)
    _finish(root)
    (work / KERNEL).write_bytes(uncompressed(compressed.read_bytes()))
    (work / VERSION).write_text(version)
    pack(root, work / FILES)
    shutil.rmtree(work / "kernel")
    shutil.rmtree(place, ignore_errors=True)
    work.rename(place)


def _unpack_packages(root: Path) -> None:
    """Unpack the packages without running their scripts, from the sources of this machine that are Debian's."""
    sources = [str(one) for one in Path("/etc/apt/sources.list.d").glob("debian.sources")]
    sources = sources or ["/etc/apt/sources.list"]
    options = ("--variant=extract", "--components=main", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
    include = f"--include={','.join(GUEST_PACKAGES)}"
    run(("mmdebstrap", "--quiet", *options, include, _suite(), str(root), *sources))
    for path in (one for pattern in LEFT_OUT for one in root.glob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _suite() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise VmUnavailable("/etc/os-release names no VERSION_CODENAME; guest images are built on Debian")


def _finish(root: Path) -> None:
    """Do by hand what the packages' scripts would have done."""
    shutil.copy(INIT, root / "init")
    (root / "init").chmod(0o755)
    for folder in ("etc/nvme", "usr/local/bin", "usr/local/sbin", "mnt", "data", "root", "var/lib"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "usr/bin/awk").unlink(missing_ok=True)
    (root / "usr/bin/awk").symlink_to("gawk")
    (root / "etc/machine-id").write_text("")
    # The user that jobs run as, which the agent's boot file makes on other machines.
    job = "headrace-job:x:900:900::/var/lib/headrace-job:/usr/sbin/nologin\n"
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/root:/bin/bash\n{job}")
    (root / "etc/group").write_text("root:x:0:\nheadrace-job:x:900:\n")
    compile_python(root, next(root.glob("usr/lib/python3.*")), root)
