"""An option names the types that may stand in for its own, and no others."""

from __future__ import annotations

from headrace.domain.planner import plan
from tests.domain.small_world import (
    CHEAP,
    CPU,
    GB,
    SMALL,
    TB,
    dataset,
    diskless,
    job,
    machine,
    world,
)


def test_only_types_with_the_same_layout_stand_in_for_the_chosen_one() -> None:
    twins = {machine(f"twin.{n}", nic_bytes_per_s=5 * GB): 1.0 + n for n in range(7)}
    others = {
        machine("other.disks", disk_count=4): 1.0,
        machine("other.arch", arch="arm64"): 1.0,
        machine("other.small", disk_bytes=TB // 2): 1.0,
        machine("other.slow", ssd_read_bytes_per_s=GB): 1.0,
        machine("other.forgetful", memory_bytes=10**6): 1.0,
        machine("other.busy", ssd_read_iops=10_000): 1.0,
    }
    made = plan(job(demand={"read_bytes_per_s": 3 * GB}), dataset(), *world({CPU: 1.0, CHEAP: 0.5, **twins, **others}))
    assert made.chosen.fleets[0].instance_type == "disk.cheap"
    assert made.chosen.fleets[0].fallback_types == ("twin.0", "twin.1", "twin.2", "twin.3", "twin.4")


def test_a_named_compute_type_has_no_stand_in() -> None:
    made = plan(job(), dataset(), *world({CPU: 1.0, diskless("cpu.twin"): 1.0, CHEAP: 1.0}))
    assert made.chosen.fleets[-1].fallback_types == ()


def test_storage_is_never_spot() -> None:
    made = plan(job(compute={"instance_type": "cpu.large", "capacity": "spot"}), dataset(), *SMALL)
    assert [one.market for one in made.chosen.fleets] == ["on-demand", "spot"]


def test_spot_machines_are_priced_by_their_saving_with_its_age_and_the_list_price_as_the_dear_end() -> None:
    spec = job(compute={"instance_type": "cpu.large", "capacity": "spot"})
    catalog, prices = world({CPU: 10.0, CHEAP: 0.5}, {"cpu.large": 60})
    made = plan(spec, dataset(), catalog, prices)
    assert made.chosen.fleets[-1].usd_per_hour_each == 4.0
    assert made.chosen.usd_high > 2 * made.chosen.usd_low
    assert any("2025-06-28" in one for one in made.assumptions)
