"""Whatever is planned, the load is even, copies are apart, connections fit, and mkfs.xfs takes the geometry."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.domain.assignment import assign
from headrace.domain.calibration import QUEUE_BYTES, QUEUE_MEMORY_SHARE
from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.dataset import DatasetFile
from headrace.domain.demand import stored_bytes
from headrace.domain.errors import InfeasibleJob
from headrace.domain.plan import FleetPlan, OptionPlan, Plan
from headrace.domain.planner import plan
from tests.domain.random_worlds import World, random_world
from tests.domain.small_world import GB, dataset, job

FIRST_SEED, WORLDS = 77, 300
BLOCK_BYTES = 4096


def fleets() -> Iterator[tuple[World, OptionPlan, FleetPlan, FleetPlan]]:
    """Yield every option with a storage fleet that the random worlds give, with its storage and its readers."""
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS):
        one = random_world(seed)
        try:
            made = plan(one.spec, one.summary, one.catalog, one.prices)
        except InfeasibleJob:
            continue
        for option in (made.chosen, *made.alternatives):
            if option.storage == "fleet":
                yield one, option, *option.fleets  # type: ignore[misc]


def test_every_ssd_of_the_fleet_has_as_many_slices_within_one() -> None:
    seen = 0
    for _, option, storage, _ in fleets():
        slices: Counter[int] = Counter()
        for volume in option.volumes:
            if volume.held_by == "storage":
                assert volume.slices_per_member == storage.disk_count
                slices.update((*volume.member_node_indexes, *volume.mirror_node_indexes))
        assert set(slices) == set(range(storage.count))
        assert max(slices.values()) - min(slices.values()) <= 1
        seen += 1
    assert seen > WORLDS / 5


def test_both_copies_of_a_slice_are_never_on_one_machine() -> None:
    mirrored = 0
    for world, option, _, _ in fleets():
        for volume in option.volumes:
            if volume.held_by == "storage" and world.wanted["mirror"]:
                pairs = list(zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=True))
                assert all(first != second for first, second in pairs)
                mirrored += 1
    assert mirrored


def test_files_are_spread_so_that_no_nic_serves_more_than_another_by_more_than_one_file() -> None:
    for number, (_, option, _, _) in enumerate(fleets()):
        volumes = [one for one in option.volumes if one.held_by == "storage"]
        sizes = [(number * 7 + index * 13) % 101 * 1_000 + 1 for index in range(20 * len(volumes))]
        files = [DatasetFile(source="s3://b/k", path=f"{n:05d}", bytes=size, etag="") for n, size in enumerate(sizes)]
        loads = [sum(stored_bytes(one.bytes, 1) for one in share) for share in assign(files, len(volumes))]
        assert max(loads) - min(loads) <= stored_bytes(max(sizes), 1)


def test_both_ends_have_memory_for_the_queues_of_all_connections() -> None:
    for world, option, storage, readers in fleets():
        memory = {one["name"]: one["memory"] for one in world.machines}
        each = option.queues_per_connection + 1
        for holder, connections in ((storage, readers.count), (readers, storage.count)):
            held = connections * each * QUEUE_BYTES
            assert held <= QUEUE_MEMORY_SHARE * memory[holder.instance_type]


def test_a_fleet_whose_queues_do_not_fit_is_refused_with_the_reason() -> None:
    catalog, prices = random_world(FIRST_SEED).catalog, random_world(FIRST_SEED).prices
    tiny = tuple(one.model_copy(update={"memory_bytes": 10**6}) for one in catalog.types)
    spec = job(compute={"instance_type": "cpu.large", "count": 4}, storage="fleet", demand={"read_bytes_per_s": 10**6})
    with pytest.raises(InfeasibleJob, match="take more memory than there is for them"):
        plan(spec, dataset(GB), catalog.model_copy(update={"types": tiny}), prices)


def real_plans(catalog: Catalog, prices: PriceList) -> Iterator[Plan]:
    for changes in (
        {"compute": {"accelerator": "h100", "count": 411}, "demand": {"read_bytes_per_s": 2_753_000_000}},
        {"compute": {"accelerator": "h100", "count": 8}, "demand": {"workload": "unet3d"}},
        {"compute": {"instance_type": "c7i.large"}, "storage_nodes": 2},
        {"compute": {"instance_type": "p4d.24xlarge"}, "storage": "local"},
    ):
        yield plan(job(**changes), dataset(2_000 * GB, 10_000), catalog, prices)
    yield plan(job(compute={"instance_type": "c7i.4xlarge"}), dataset(15_000 * GB, 12, 9_000 * GB), catalog, prices)


@pytest.mark.skipif(shutil.which("mkfs.xfs") is None, reason="mkfs.xfs is not installed (package xfsprogs)")
def test_mkfs_xfs_takes_every_planned_geometry_as_it_is(catalog: Catalog, prices: PriceList, tmp_path: Path) -> None:
    tried = set()
    for made in real_plans(catalog, prices):
        for volume in made.chosen.volumes:
            slices = volume.slices_per_member * len(volume.member_node_indexes)
            geometry = (volume.stripe_unit_bytes, slices, volume.capacity_bytes)
            if geometry not in tried:
                assert formatted(tmp_path / "sparse", *geometry) == (
                    volume.stripe_unit_bytes // BLOCK_BYTES,
                    volume.stripe_unit_bytes // BLOCK_BYTES * slices,
                )
                tried.add(geometry)
    assert len(tried) >= 5


def formatted(file: Path, unit_bytes: int, slices: int, size_bytes: int) -> tuple[int, int]:
    """Return sunit and swidth in blocks as mkfs.xfs would make them, without making them."""
    file.touch()
    whole_blocks = size_bytes // BLOCK_BYTES * BLOCK_BYTES
    geometry = ("-d", f"su={unit_bytes},sw={slices},file,name={file},size={whole_blocks}", "-l", f"su={unit_bytes}")
    done = subprocess.run(("mkfs.xfs", "-N", *geometry), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = re.search(r"sunit=(\d+) +swidth=(\d+) blks", done.stdout)
    assert found, done.stdout
    return int(found[1]), int(found[2])
