"""Where slices lie on this machine's disks: equal parts of them, and shares of what is kept at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace_agent.data_path import SliceRequest
from headrace_agent.fields import ConfigError
from headrace_agent.machine import MAPPED, Disk
from headrace_agent.names import plain_name, uuid_text

SECTOR_BYTES = 512
ALIGN_SECTORS = 2048
"""1 MiB, so that every slice begins on a boundary that any SSD likes."""

WHOLE_PPM = 1_000_000


@dataclass(frozen=True)
class Slice:
    """One slice of a disk, under a device-mapper name; start and length are sectors, or how they would be found."""

    name: str
    disk: Disk
    start: str
    length: str

    @property
    def device(self) -> str:
        """Path of the mapped device."""
        return f"/dev/mapper/{self.name}"


def cut(wanted: Sequence[SliceRequest], disks: Sequence[Disk], kept_ppm: int) -> dict[str, Slice]:
    """Return the slice for each namespace UUID, dealt over the disks in turn.

    Those with a share of a disk are dealt among themselves and lie in what is kept of the end of each; the others are
    equal parts of all before it. Raises ConfigError when there is no disk, or not enough of it.
    """
    if wanted and not disks:
        raise ConfigError("this machine has no local NVMe disk to serve; choose an instance type with instance store")
    _check_disks(disks, kept_ppm)
    equal = [one for one in wanted if one.share_ppm is None]
    shared = [one for one in wanted if one.share_ppm is not None]
    parts = -(-len(equal) // len(disks)) if disks else 0
    cuts = {
        one.namespace_uuid: equal_part(_mapped(one), disks[number % len(disks)], number // len(disks), parts, kept_ppm)
        for number, one in enumerate(equal)
    }
    for number, disk in enumerate(disks):
        cuts |= _kept_slices(shared[number :: len(disks)], disk, kept_ppm)
    return {uuid_text(one.namespace_uuid): cuts[one.namespace_uuid] for one in wanted}


def equal_part(name: str, disk: Disk, part: int, parts: int, kept_ppm: int = 0) -> Slice:
    """Return part `part` of `parts` equal ones of a disk, but for what is kept of its end."""
    if disk.sectors is None:
        whole = f"SECTORS({disk.path})"
        length = f"{_share_in_words(disk, WHOLE_PPM - kept_ppm) if kept_ppm else whole}/{parts}"
        return Slice(name, disk, f"{part}*{length}" if part else "0", length)
    sectors = _aligned(_kept_start(disk.sectors, kept_ppm) // parts)
    return Slice(name, disk, str(part * sectors), str(sectors))


def _kept_slices(shared: Sequence[SliceRequest], disk: Disk, kept_ppm: int) -> dict[str, Slice]:
    """Return the slices in the kept end of one disk, one after the other."""
    shares = [one.share_ppm or 0 for one in shared]
    if sum(shares) > kept_ppm:
        raise ConfigError(
            f"the slices {', '.join(one.name for one in shared)} have {sum(shares)} millionths of the disk {disk.path} "
            f"together, and config.json keeps {kept_ppm} of its end for them. Ask for fewer compute nodes, or for more "
            "storage nodes"
        )
    found, start = {}, 0
    for one, share in zip(shared, shares, strict=True):
        slice_ = _kept_slice(one, disk, share, start, kept_ppm)
        start += share if disk.sectors is None else int(slice_.length)
        found[one.namespace_uuid] = slice_
    return found


def _kept_slice(one: SliceRequest, disk: Disk, share_ppm: int, after: int, kept_ppm: int) -> Slice:
    """Return the slice that comes after so many sectors of the kept end, or millionths where no sectors are known."""
    if disk.sectors is None:
        start, length = WHOLE_PPM - kept_ppm + after, share_ppm
        return Slice(_mapped(one), disk, _share_in_words(disk, start), _share_in_words(disk, length))
    length = _aligned(disk.sectors * share_ppm // WHOLE_PPM)
    if not length:
        raise ConfigError(
            f"the slice {one.name} is to have {share_ppm} millionths of the {disk.sectors * SECTOR_BYTES} bytes of the "
            f"disk {disk.path}, which is less than 1 MiB; choose an instance type with larger disks"
        )
    return Slice(_mapped(one), disk, str(_kept_start(disk.sectors, kept_ppm) + after), str(length))


def _kept_start(sectors: int, kept_ppm: int) -> int:
    """Return where the kept end of a disk begins; where nothing is kept, its end as far as it is aligned."""
    return _aligned(sectors - -(-sectors * kept_ppm // WHOLE_PPM))


def _check_disks(disks: Sequence[Disk], kept_ppm: int) -> None:
    for disk in disks:
        if kept_ppm and disk.sectors is not None and _kept_start(disk.sectors, kept_ppm) <= 0:
            raise ConfigError(
                f"config.json keeps {kept_ppm} millionths of the {disk.sectors * SECTOR_BYTES} bytes of the disk "
                f"{disk.path} for scratch volumes, which leaves less than 1 MiB before them. Ask for fewer compute "
                "nodes, or choose an instance type with larger disks"
            )


def _share_in_words(disk: Disk, ppm: int) -> str:
    return f"SECTORS({disk.path})*{ppm}/{WHOLE_PPM}"


def _mapped(one: SliceRequest) -> str:
    return f"{MAPPED}{plain_name(one.name)}"


def _aligned(sectors: int) -> int:
    return sectors // ALIGN_SECTORS * ALIGN_SECTORS
