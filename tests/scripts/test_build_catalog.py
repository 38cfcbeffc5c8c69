"""The packaged catalog is what the script makes of its sources, and holds what plans rely on."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

from scripts.build_catalog import DEFAULT_SOURCE, TARGET, accelerator, build, iops, nic, ssd

MAX_PACKAGED_BYTES = 300_000
TYPE = {
    "instance_type": "x1.large",
    "net_plan_gbps": "50",
    "net_per_card_baseline": "50",
    "disk_type": "ssd",
}


def packaged() -> dict[str, str]:
    texts = {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()).decode() for path in TARGET.glob("*.gz")}
    return {**texts, "manifest.json": (TARGET / "manifest.json").read_text(encoding="utf-8")}


def expected(source: Path) -> dict[str, str]:
    """Return what the sources make; without them, what is packaged, whose checksums another test holds."""
    return build(source) if source.is_dir() else packaged()


def test_the_packaged_files_are_what_the_sources_make() -> None:
    assert packaged() == expected(DEFAULT_SOURCE)


def test_the_packaged_files_have_the_checksums_that_the_manifest_gives() -> None:
    texts = packaged()
    sums = json.loads(texts.pop("manifest.json"))["sha256"]
    assert {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()} == sums


def test_the_packaged_files_are_small() -> None:
    assert sum(path.stat().st_size for path in TARGET.iterdir()) < MAX_PACKAGED_BYTES


def test_every_row_of_the_catalog_has_a_value_for_every_column() -> None:
    packed = json.loads(packaged()["catalog.json"])
    assert {len(row) for row in packed["types"]} == {len(packed["columns"])}
    assert len({row[0] for row in packed["types"]}) == len(packed["types"]) > 1_200


def test_the_text_under_a_share_alike_licence_is_left_out() -> None:
    assert "doc_" not in packaged()["catalog.json"]


def test_a_host_whose_published_figure_is_efa_counts_as_one_ena_interface() -> None:
    efa = {**TYPE, "instance_type": "p5.48xlarge", "net_plan_gbps": "3200", "net_per_card_baseline": "100|100"}
    assert nic(efa) == (100.0, "override")


def test_a_machine_with_several_cards_counts_as_its_first() -> None:
    assert nic({**TYPE, "net_plan_gbps": "600", "net_per_card_baseline": "300|300"}) == (300.0, "one_card")


def test_cards_are_never_summed_beyond_the_whole_machine() -> None:
    assert nic({**TYPE, "net_plan_gbps": "180", "net_per_card_baseline": "300|300"}) == (180.0, "baseline")


def test_a_measured_sequential_rate_is_taken_as_it_is() -> None:
    disk = {"seq_read_bytes_s": "2000", "seq_write_bytes_s": "1000", "seq_source": "scylla_iotune_per_disk_x2"}
    assert ssd(TYPE, disk) == (2000, 1000, "measured")


def test_a_rate_from_another_size_is_marked_as_extrapolated() -> None:
    disk = {"seq_read_bytes_s": "2000", "seq_write_bytes_s": "1000", "seq_source": "extrapolated_per_disk_from_i7i"}
    assert ssd(TYPE, disk)[2] == "extrapolated"


def test_random_operations_stand_in_for_an_unmeasured_sequential_rate() -> None:
    assert ssd(TYPE, {"netflix_read_iops": "10", "netflix_write_iops": "5"}) == (40_960, 20_480, "iops_floor")


def test_the_smaller_of_two_measurements_of_operations_is_taken() -> None:
    both = {"netflix_read_iops": "2600", "iotune_read_iops": "1770"}
    assert iops(TYPE, both) == 1_770
    assert iops(TYPE, {"netflix_read_iops": "2600", "iotune_read_iops": ""}) == 2_600
    assert iops(TYPE, {}) == 0
    assert iops({**TYPE, "disk_type": "hdd"}, both) == 0


def test_an_unmeasured_disk_has_no_rate() -> None:
    assert ssd(TYPE, {}) == (0, 0, "none")


def test_a_hard_disk_has_no_ssd_rate_whatever_was_measured() -> None:
    assert ssd({**TYPE, "disk_type": "hdd"}, {"netflix_read_iops": "10", "netflix_write_iops": "5"}) == (0, 0, "none")


def test_accelerators_are_named_as_jobs_write_them() -> None:
    names = {name: accelerator(name) for name in ("NVIDIA H100", "NVIDIA RTX PRO 4500", "AWS Trainium2", "")}
    assert names == {
        "NVIDIA H100": "h100",
        "NVIDIA RTX PRO 4500": "rtx-pro-4500",
        "AWS Trainium2": "trainium2",
        "": None,
    }
