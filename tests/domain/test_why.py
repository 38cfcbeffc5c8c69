"""Why a type is in a plan or not, in each role that it could have."""

from __future__ import annotations

import pytest

from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from headrace.domain.why import WhyType, why
from tests.domain.small_world import CHEAP, CPU, FAST, GB, GPU1, GPU8, SMALL, TB, dataset, job, machine, world


def asked(name: str, spec: JobSpec, small: tuple[Catalog, PriceList] = SMALL, total_bytes: int = 100 * GB) -> WhyType:
    return why(name, spec, dataset(total_bytes), *small)


READS = {"read_bytes_per_s": 6 * GB}


def test_the_chosen_types_are_said_to_be_chosen_with_the_limit() -> None:
    found = asked("disk.cheap", job(demand=READS))
    assert found.chosen_as == ("storage",)
    assert found.reasons[0].startswith("as storage: chosen: 2 x disk.cheap and 1 x cpu.large for ")
    assert "needed" in found.reasons[0]
    assert asked("cpu.large", job(demand=READS)).chosen_as == ("compute",)


def test_a_dearer_type_is_told_by_how_much() -> None:
    found = asked("disk.fast", job(demand=READS))
    assert found.chosen_as == ()
    assert "1 x disk.fast and 1 x cpu.large would do for" in found.reasons[0]
    assert "more than 2 x disk.cheap and 1 x cpu.large" in found.reasons[0]


def test_a_type_that_can_store_nothing_is_told_why() -> None:
    assert asked("cpu.large", job()).reasons[0] == "as storage: no local SSD"


def test_a_type_of_which_too_many_were_needed_is_told_so() -> None:
    small = machine("disk.small", disk_bytes=GB)
    found = asked("disk.small", job(), world({CPU: 1.0, FAST: 2.0, small: 0.01}), 2 * TB)
    assert found.reasons[0] == "as storage: 256 nodes hold less than the data set (disk.small)"


def test_a_type_without_the_accelerator_is_told_what_it_has() -> None:
    spec = job(compute={"accelerator": "h100", "count": 1})
    small = world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5, FAST: 2.0})
    assert asked("disk.fast", spec, small).reasons[1] == "as compute: the job asks for h100, it has no accelerator"
    assert "more than" in asked("gpu.8x", spec, small).reasons[1]


def test_a_type_that_cannot_be_fed_is_told_the_numbers() -> None:
    spec = job(compute={"accelerator": "h100", "count": 8}, demand={"read_bytes_per_s": 2 * GB})
    found = asked("gpu.8x", spec, world({GPU8: 8.0, GPU1: 3.0, CHEAP: 0.5}), 3 * TB)
    assert "NIC brings in less than it needs (gpu.8x: 7.07 GB/s of 16 GB/s)" in found.reasons[1]


def test_a_type_beside_the_named_one_is_told_the_job_s_own() -> None:
    assert asked("disk.fast", job()).reasons[1] == "as compute: the job names cpu.large"


def test_storage_types_have_no_place_in_a_job_without_a_fleet() -> None:
    found = asked("disk.fast", job(storage="direct"))
    assert found.reasons[0] == "as storage: the job asks for storage: direct, which has no storage machines"


def test_an_unknown_type_gets_the_close_ones() -> None:
    with pytest.raises(
        InfeasibleJob, match=r"'disk\.fats' is not a machine type known in us-east-1; close: disk\.fast"
    ):
        asked("disk.fats", job())
