"""Knows what is mounted, from the kernel's own list: stat on a shut-down file system fails, the list does not."""

from __future__ import annotations

from pathlib import Path

MOUNTS = Path("/proc/self/mounts")


def mount_points(text: str) -> tuple[str, ...]:
    """Return the mount points of a mounts file, oldest first, their escapes undone."""
    fields = (line.split(" ") for line in text.splitlines())
    return tuple(parts[1].encode().decode("unicode_escape") for parts in fields if len(parts) > 1)


def is_mounted(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Tell whether something is mounted exactly on the folder."""
    return str(folder) in mount_points(mounts.read_text())
