"""Slices lie side by side on their disks, and file systems have the geometry of their stripes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.actions import Run
from headrace_agent.config import SliceRequest
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Disk
from headrace_agent.slices import ALIGN_SECTORS, Slice, cut
from headrace_agent.stripe_commands import make_file_system
from tests.agent.fabric_configs import of, storage, uuid_of


def asked(number: int, share_ppm: int | None = None) -> SliceRequest:
    return SliceRequest(f"v0-0-{number}", uuid_of("v0", 0, number), uuid_of("v1", 0), share_ppm)


def disks_of(*sectors: int | None) -> list[Disk]:
    return [Disk(f"/dev/nvme{number}n1", size) for number, size in enumerate(sectors)]


def lie_apart(cuts: Iterable[Slice], sectors: int) -> bool:
    """Tell whether slices of one disk lie apart, on it, and on its boundaries."""
    spans = sorted((int(one.start), int(one.start) + int(one.length)) for one in cuts)
    flat = [0] + [edge for span in spans for edge in span] + [sectors]
    return flat == sorted(flat) and all(start % ALIGN_SECTORS == 0 < end - start for start, end in spans)


@given(st.integers(1, 8), st.integers(1, 24), st.integers(10**6, 10**11))
def test_slices_never_overlap_and_stay_on_their_disk(disks: int, slices: int, sectors: int) -> None:
    cuts = cut([asked(number) for number in range(slices)], disks_of(*[sectors] * disks), 0)
    assert len(cuts) == slices
    by_disk: dict[str, list[Slice]] = defaultdict(list)
    for one in cuts.values():
        by_disk[one.disk.path].append(one)
    assert max(map(len, by_disk.values())) - min(map(len, by_disk.values())) <= 1
    assert all(lie_apart(spans, sectors) for spans in by_disk.values())


@given(
    st.lists(st.integers(10**8, 10**11), min_size=1, max_size=6),
    st.lists(st.none() | st.integers(100, 60_000), min_size=1, max_size=24),
    st.integers(0, 999_000),
)
def test_shares_and_equal_parts_never_overlap_and_stay_on_their_disk_or_do_not_fit(
    sectors: list[int], shares: list[int | None], kept_ppm: int
) -> None:
    wanted = [asked(number, share) for number, share in enumerate(shares)]
    disks = disks_of(*sectors)
    given_ppm = [share for share in shares if share is not None]
    if max(sum(given_ppm[number :: len(disks)]) for number in range(len(disks))) > kept_ppm:
        with pytest.raises(ConfigError, match="Ask for fewer compute nodes"):
            cut(wanted, disks, kept_ppm)
        return
    cuts = cut(wanted, disks, kept_ppm)
    assert list(cuts) == [one.namespace_uuid for one in wanted]
    for disk in disks:
        assert lie_apart([one for one in cuts.values() if one.disk == disk], disk.sectors or 0)
    for one in wanted:
        if one.share_ppm is None:
            continue
        found = cuts[one.namespace_uuid]
        size = found.disk.sectors or 0
        assert 0 <= size * one.share_ppm / 10**6 - int(found.length) < ALIGN_SECTORS + 1
        assert int(found.start) > size - size * kept_ppm / 10**6 - ALIGN_SECTORS - 1


def test_shares_follow_one_another_where_the_kept_end_begins() -> None:
    wanted = [asked(0), *(asked(number, 20_000) for number in range(1, 5)), asked(5)]
    cuts = cut(wanted, disks_of(100 * ALIGN_SECTORS + 7, 200 * ALIGN_SECTORS), 100_000)
    spans = [(one.disk.path[-3], int(one.start) / ALIGN_SECTORS, int(one.length)) for one in cuts.values()]
    two, four = 2 * ALIGN_SECTORS, 4 * ALIGN_SECTORS
    assert spans == [
        ("0", 0, 90 * ALIGN_SECTORS),
        *[("0", 90, two), ("1", 180, four), ("0", 92, two), ("1", 184, four)],
        ("1", 0, 180 * ALIGN_SECTORS),
    ]


def test_equal_parts_are_equal_also_where_no_share_lies() -> None:
    sectors = 1000 * ALIGN_SECTORS + 1
    (here,) = cut([asked(0)], disks_of(sectors), 500_000).values()
    (there, _) = cut([asked(0), asked(1, 500_000)], disks_of(sectors), 500_000).values()
    assert (here.start, here.length) == (there.start, there.length)


def test_what_does_not_fit_into_the_kept_end_is_refused_with_what_was_asked_and_found() -> None:
    with pytest.raises(ConfigError, match=r"v0-0-0, v0-0-1 have 60 millionths of the disk /dev/nvme0n1 .* keeps 50"):
        cut([asked(0, 30), asked(1, 30)], disks_of(10**9), 50)
    with pytest.raises(ConfigError, match=r"keeps 990000 millionths of the 20971520 bytes of the disk /dev/nvme0n1"):
        cut([asked(0)], disks_of(20 * ALIGN_SECTORS), 990_000)
    with pytest.raises(ConfigError, match=r"v0-0-0 is to have 1 millionths of the .* less than 1 MiB"):
        cut([asked(0, 1)], disks_of(10**6), 3)


def test_where_a_disk_is_only_imagined_its_slices_are_formulas() -> None:
    wanted = [asked(0), asked(1), asked(2, 100_000), asked(3, 100_000)]
    cuts = cut(wanted, disks_of(None), 250_000)
    disk = "SECTORS(/dev/nvme0n1)"
    assert [(one.start, one.length) for one in cuts.values()] == [
        ("0", f"{disk}*750000/1000000/2"),
        (f"1*{disk}*750000/1000000/2", f"{disk}*750000/1000000/2"),
        (f"{disk}*750000/1000000", f"{disk}*100000/1000000"),
        (f"{disk}*850000/1000000", f"{disk}*100000/1000000"),
    ]


@pytest.mark.parametrize(
    ("stripe_bytes", "log_bytes"),
    [(4096, 4096), (131072, 131072), (262144, 262144), (524288, 32768), (1048576, 32768)],
)
def test_the_log_stripe_is_one_that_mkfs_takes(stripe_bytes: int, log_bytes: int) -> None:
    made = make_file_system(storage(volumes=[of("v0", ["a", "b"], stripe_unit_bytes=stripe_bytes)]).volumes[0])
    assert isinstance(made, Run)
    assert made.argv[made.argv.index("-l") + 1] == f"su={log_bytes}"


@pytest.mark.parametrize(("level", "members", "data"), [(0, 4, 4), (1, 2, 1), (1, 3, 1), (10, 4, 2)])
def test_the_width_of_the_stripe_counts_members_with_different_bytes(level: int, members: int, data: int) -> None:
    made = make_file_system(storage(volumes=[of("v0", ["a"] * members, raid_level=level)]).volumes[0])
    assert isinstance(made, Run)
    assert made.argv[made.argv.index("-d") + 1] == f"su=131072,sw={data}"
