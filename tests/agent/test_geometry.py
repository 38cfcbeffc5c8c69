"""Slices lie side by side on their disks, and file systems have the geometry of their stripes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.actions import Run
from headrace_agent.config import SliceRequest
from headrace_agent.machine import Disk
from headrace_agent.slice_commands import ALIGN_SECTORS, cut
from headrace_agent.stripe_commands import make_file_system
from tests.agent.fabric_configs import of, storage, uuid_of


@given(st.integers(1, 8), st.integers(1, 24), st.integers(10**6, 10**11))
def test_slices_never_overlap_and_stay_on_their_disk(disks: int, slices: int, sectors: int) -> None:
    wanted = [SliceRequest(f"v0-0-{n}", uuid_of("v0", 0, n), uuid_of("v1", 0)) for n in range(slices)]
    cuts = cut(wanted, [Disk(f"/dev/nvme{number}n1", sectors) for number in range(disks)])
    assert len(cuts) == slices
    by_disk: dict[str, list[tuple[int, int]]] = {}
    for one in cuts.values():
        by_disk.setdefault(one.disk.path, []).append((int(one.start), int(one.start) + int(one.length)))
    assert max(map(len, by_disk.values())) - min(map(len, by_disk.values())) <= 1
    for spans in by_disk.values():
        flat = [0] + [edge for span in sorted(spans) for edge in span] + [sectors]
        assert flat == sorted(flat)
        assert all(start % ALIGN_SECTORS == 0 for start, _ in spans)


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
