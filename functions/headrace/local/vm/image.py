"""The guest image: the distribution's own kernel and programs in one initial file system, kept by package versions."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.domain.errors import HeadraceError
from headrace.local.vm.accelerator import accelerator

KERNEL_PACKAGE = "linux-image-amd64"
"""The full kernel: Debian's cloud kernel has no rdma_rxe."""

HOST_PACKAGES = ("qemu-system-x86", "mmdebstrap", "cpio", "kmod", "ipxe-qemu", "seabios")
HOST_PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "cpio", "depmod", "apt-get", "dpkg-deb")
GUEST_PACKAGES = (
    *("busybox-static", "bash", "coreutils", "util-linux", "mount", "nvme-cli", "mdadm", "xfsprogs", "iproute2"),
    *("kmod", "dmsetup", "qemu-guest-agent", "procps", "grep", "sed", "gawk", "findutils", "python3"),
)
GUEST_MODULES = (
    *("virtio_pci", "virtio_net", "virtio_console", "virtio_rng", "nvme", "nvme_fabrics", "nvme_tcp", "nvme_rdma"),
    *("nvmet", "nvmet_tcp", "nvmet_rdma", "rdma_rxe", "configfs", "raid0", "raid1", "raid10", "dm_mod", "dm_flakey"),
    *("xfs", "overlay", "loop", "crc32_generic", "crc32_pclmul", "crc32c_generic", "crc32c_intel", "libcrc32c"),
    *("nvme_auth", "hmac", "sha256_generic", "dh_generic"),
)
"""rdma_rxe asks the kernel's crypto API for crc32, which modprobe does not see as a dependency; so do keys of hosts."""

LEFT_OUT = (
    *("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info", "usr/share/perl", "usr/share/perl5"),
    *("usr/share/bash-completion", "usr/share/zsh", "usr/share/i18n", "usr/lib/udev/hwdb.d", "var/lib/apt", "boot"),
    "usr/lib/x86_64-linux-gnu/libicu*",
    *("var/lib/dpkg", "var/cache", "usr/games", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/perl-base"),
)
AGENT_REQUIREMENTS = ("botocore>=1.40,<2", "obstore>=0.12,<0.13")
"""Those of agent/pyproject.toml."""

PROGRAMS = {
    "headrace-agent": "#!/usr/bin/python3\nimport sys\nfrom headrace_agent.__main__ import main\n\nsys.exit(main())\n",
    # The guest has no systemd; this is all that the agent asks of it.
    "systemctl": '#!/bin/sh\n[ "$1" = poweroff ] && exec busybox poweroff -f\nexit 1\n',
}
INIT = Path(__file__).with_name("init.sh")
BUILD_SECONDS = 900


class VmUnavailable(HeadraceError):
    """Virtual machines cannot be used here; the text says what is missing and how to get it."""


@dataclass(frozen=True)
class Image:
    """What QEMU starts: a kernel, and the guest's whole file system as cpio archives that are loaded one on another."""

    kernel: Path
    layers: tuple[Path, ...]
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
    kernel_package = _kernel_package()
    place = folder / f"image-{_key(kernel_package)}"
    with _alone(folder):
        if not (place / "guest.cpio").exists():
            say(f"building the guest image with {kernel_package} in {place}")
            _build(place, kernel_package)
        version = (place / "version").read_text().strip()
        kernel = place / "vmlinuz"
        return Image(kernel, (place / "guest.cpio",), version, accelerator(kernel, folder))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other run makes anything in the folder; the kernel ends the turn of one that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def agent_layer(image: Image, agent: Path, requirements: Sequence[str], folder: Path) -> Path:
    """Return a layer with the agent and the Python packages it needs, made for the guest's interpreter.

    The packages are fetched once, by pip; the agent's own files are packed each time. Raises VmUnavailable.
    """
    packages = image.kernel.parent.parent / f"packages-{_digest(*requirements)}"
    with _alone(packages.parent):
        if not packages.exists():
            _fetch_packages(packages, requirements)
    root = folder / "agent"
    shutil.rmtree(root, ignore_errors=True)
    site = root / "usr/lib/python3/dist-packages"
    shutil.copytree(packages, site)
    shutil.copytree(agent, site / "headrace_agent", ignore=shutil.ignore_patterns("__pycache__"))
    authorities = root / "etc/ssl/certs/ca-certificates.crt"
    authorities.parent.mkdir(parents=True)
    shutil.copy(packages / "botocore/cacert.pem", authorities)  # without any, obstore makes no client, even for http
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "python").symlink_to("/usr/bin/python3")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/sh").symlink_to("bash")
    _pack(root, folder / "agent.cpio")
    shutil.rmtree(root)
    return folder / "agent.cpio"


def _fetch_packages(target: Path, requirements: Sequence[str]) -> None:
    """Have pip choose the wheels of the guest's Python, which is Debian's and not the one that runs this."""
    made = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(made, ignore_errors=True)
    wanted = ("--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:")
    platforms = ("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")
    _run((sys.executable, "-m", "pip", "install", "-q", "--target", str(made), *wanted, *platforms, *requirements))
    for service in (made / "botocore/data").glob("*/"):
        if service.is_dir() and service.name != "events":
            shutil.rmtree(service)
    made.rename(target)


def _kernel_package() -> str:
    """Return the package that the distribution's kernel package depends on, whose name holds the version."""
    for line in _output(("apt-cache", "depends", KERNEL_PACKAGE)).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise VmUnavailable(f"apt knows no package {KERNEL_PACKAGE}; run apt-get update as root on Debian 12 or newer")


def _key(kernel_package: str) -> str:
    policy = _output(("apt-cache", "policy", kernel_package, *GUEST_PACKAGES))
    kept = [line.strip() for line in policy.splitlines() if not line.startswith(" ") or "Candidate" in line]
    return _digest(*kept, *GUEST_MODULES, *LEFT_OUT, INIT.read_text(), Path(__file__).read_text())


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _build(place: Path, kernel_package: str) -> None:
    work = place.with_name(f"{place.name}.tmp")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    version = _unpack_kernel(work, kernel_package)
    root = work / "root"
    _unpack_packages(root)
    _take_modules(work / "kernel", version, root)
    _finish(root)
    shutil.copy(work / "kernel/boot" / f"vmlinuz-{version}", work / "vmlinuz")
    (work / "version").write_text(version)
    _pack(root, work / "guest.cpio")
    shutil.rmtree(root)
    shutil.rmtree(work / "kernel")
    shutil.rmtree(place, ignore_errors=True)
    work.rename(place)


def _unpack_kernel(work: Path, kernel_package: str) -> str:
    _run(("apt-get", "download", "-q", kernel_package), cwd=work)
    (archive,) = work.glob("linux-image-*.deb")
    _run(("dpkg-deb", "-x", str(archive), str(work / "kernel")))
    archive.unlink()
    modules = work / "kernel/lib/modules"
    if not modules.exists():
        (work / "kernel/lib").symlink_to("usr/lib")
    (found,) = modules.iterdir()
    _run(("depmod", "-b", str(work / "kernel"), found.name))
    return found.name


def _unpack_packages(root: Path) -> None:
    """Unpack the packages without running their scripts, from the sources of this machine that are Debian's."""
    sources = [str(one) for one in Path("/etc/apt/sources.list.d").glob("debian.sources")]
    sources = sources or ["/etc/apt/sources.list"]
    options = ("--variant=extract", "--components=main", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
    include = f"--include={','.join(GUEST_PACKAGES)}"
    _run(("mmdebstrap", "--quiet", *options, include, _suite(), str(root), *sources))
    for path in (one for pattern in LEFT_OUT for one in root.glob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _suite() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise VmUnavailable("/etc/os-release names no VERSION_CODENAME; guest images are built on Debian")


def _take_modules(kernel: Path, version: str, root: Path) -> None:
    """Copy the wanted modules and all that they depend on."""
    target = root / "usr/lib/modules" / version
    target.mkdir(parents=True)
    source = kernel / "lib/modules" / version
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(source / name, target / name)
    for module in GUEST_MODULES:
        shown = subprocess.run(
            ("modprobe", "-d", str(kernel), "-S", version, "--show-depends", module),
            capture_output=True, text=True, check=False, env=_environment(),
        ).stdout  # fmt: skip
        for line in shown.splitlines():
            if line.startswith("insmod "):
                part = line.split()[1].partition(f"lib/modules/{version}/")[2]
                (target / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source / part, target / part)
    _run(("depmod", "-b", str(root), version))


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
    _compile_python(root)


def _compile_python(root: Path) -> None:
    """Compile the guest's standard library by the guest's own Python, as its package would: emulated it takes long."""
    library = next(root.glob("usr/lib/python3.*"))
    loader = (str(root / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(root / "usr/lib/x86_64-linux-gnu"))
    python = (*loader, str(root / "usr/bin" / library.name), "-I")
    _run((*python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(library)))


def _pack(root: Path, archive: Path) -> None:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    made = archive.with_name(f"{archive.name}.tmp")
    with made.open("wb") as stream:
        subprocess.run(
            ("cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"),
            input="".join(f"{name}\n" for name in names).encode(), stdout=stream, cwd=root, check=True,
        )  # fmt: skip
    made.rename(archive)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}


def _run(argv: Sequence[str], cwd: Path | None = None) -> None:
    done = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, check=False, env=_environment(), timeout=BUILD_SECONDS
    )
    if done.returncode:
        raise VmUnavailable(f"`{' '.join(argv[:3])} ...` failed: {(done.stderr or done.stdout).strip()[-800:]}")


def _output(argv: Sequence[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment())
    return done.stdout
