"""Finds out what guests are to run on: this machine's own virtualisation where a kernel really boots by it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from headrace.local.vm.qemu import QEMU, SOFTWARE

KVM_DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TRY_SECONDS = 10
"""A kernel without a file system gives up within two; where virtualisation only seems to be there, none says a word."""

TRIED = "Linux version"


def accelerator(kernel: Path, known: Path) -> str:
    """Return QEMU's word for how guests run here; the answer is kept in the folder until this machine boots again."""
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return SOFTWARE
    note = known / f"accelerator-{BOOT_ID.read_text().strip()}"
    if not note.exists():
        note.write_text("kvm" if boots_by_kvm(kernel) else SOFTWARE)
    return note.read_text()


def boots_by_kvm(kernel: Path) -> bool:
    """Tell whether a kernel boots by KVM: some machines have the device, and a guest hangs at its first instruction."""
    guest = ("-accel", "kvm", "-cpu", "max", "-machine", "q35", "-m", "256", "-nodefaults", "-no-user-config")
    boot = ("-display", "none", "-no-reboot", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1")
    try:
        done = subprocess.run(
            (QEMU, *guest, *boot, "-serial", "stdio"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and TRIED.encode() in done.stdout
