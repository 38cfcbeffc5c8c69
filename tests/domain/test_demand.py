"""The demand comes from the job, from a published workload or from an assumption, and says which."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.catalog import MachineType
from headrace.domain.demand import Need, capacity_bytes, need_of, per_accelerator
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec
from tests.domain.small_world import GB, UNET3D, dataset, diskless, job, machine

GPU8 = machine("gpu.8x", accelerator="h100", accelerators=8)
H100_READS = 100e6 * 20 * 0.9 * 1.03


def need(spec: JobSpec, on: MachineType = GPU8, machines: int = 1) -> Need:
    return need_of(spec, dataset(), on, machines, (UNET3D,))


def on_accelerators(count: int, **demand: object) -> JobSpec:
    return job(compute={"accelerator": "h100", "count": count}, demand=demand)


LLAMA_3_GIB = {8_030_000_000: 104.7, 70_600_000_000: 920.5, 405_900_000_000: 5_292.3, 1_381_000_000_000: 18_006.0}
"""MLPerf Storage, Submission_guidelines.md table 2."""


@pytest.mark.parametrize("parameters", LLAMA_3_GIB)
def test_a_checkpoint_of_so_many_parameters_has_the_published_size(parameters: int) -> None:
    found = need(on_accelerators(1, checkpoints={"parameters": parameters, "period_s": 600}))
    assert found.total.checkpoint_bytes / 2**30 == pytest.approx(LLAMA_3_GIB[parameters], rel=1e-3)


def test_a_published_workload_is_sample_bytes_times_rate_times_busy_share_and_three_percent() -> None:
    found = need(on_accelerators(16, workload="unet3d"), machines=2)
    assert found.total.read_bytes_per_s == math.ceil(16 * H100_READS)
    assert found.node_bytes_per_s == math.ceil(8 * H100_READS)
    assert found.assumptions == ()


def test_accelerators_that_are_left_over_by_rounding_read_nothing() -> None:
    assert need(on_accelerators(9, workload="unet3d"), machines=2).total.read_bytes_per_s == math.ceil(9 * H100_READS)


def test_another_accelerator_stands_in_where_none_is_published_and_that_is_said() -> None:
    found = need(
        job(compute={"accelerator": "l4"}, demand={"workload": "unet3d"}),
        machine("g", accelerator="l4", accelerators=1),
    )
    assert found.total.read_bytes_per_s == math.ceil(H100_READS)
    assert "nobody published unet3d on l4" in found.assumptions[0]


def test_a_machine_without_accelerator_reads_as_one_emulated() -> None:
    found = need(job(demand={"workload": "unet3d"}), diskless("cpu.large"), machines=3)
    assert found.total.read_bytes_per_s == math.ceil(3 * H100_READS)


def test_a_named_machine_reads_for_each_of_its_accelerators() -> None:
    found = need(job(compute={"instance_type": "gpu.8x"}, demand={"workload": "unet3d"}))
    assert found.node_bytes_per_s == math.ceil(8 * H100_READS)


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InfeasibleJob, match=r"did you mean 'unet3d'\?"):
        need(on_accelerators(1, workload="unet-3d"))
    with pytest.raises(InfeasibleJob, match="known: unet3d"):
        need(on_accelerators(1, workload="zzz"))


def test_stated_bytes_are_per_accelerator_or_per_machine() -> None:
    assert need(on_accelerators(8, read_bytes_per_s=10)).total.read_bytes_per_s == 80
    named = job(compute={"instance_type": "gpu.8x", "count": 2}, demand={"read_bytes_per_s": 10})
    assert need(named, machines=2).total.read_bytes_per_s == 20


def test_samples_and_their_size_are_multiplied() -> None:
    found = need(on_accelerators(2, samples_per_s=2.5, sample_bytes=1000))
    assert found.total.read_bytes_per_s == 5_000
    assert "2.5 samples/s of 1 kB, as the job states" in found.total.basis


def test_no_statement_is_an_assumption_with_its_source() -> None:
    found = need(on_accelerators(1))
    assert found.assumed
    assert found.total.read_bytes_per_s == 283_210_200
    assert "NVIDIA DeepLearningExamples" in found.assumptions[0]


@given(st.integers(10**6, 10**11), st.integers(1, 16))
def test_an_assumption_never_exceeds_what_the_nic_brings_in(nic: int, accelerators: int) -> None:
    for spec in (on_accelerators(accelerators), job()):
        found = need(spec, machine("g", nic_bytes_per_s=nic, accelerator="h100", accelerators=accelerators))
        assert found.node_bytes_per_s <= 0.707 * nic + 1e-6


def test_checkpoints_are_passed_on() -> None:
    found = need(on_accelerators(1, checkpoints={"bytes": 5 * GB, "period_s": 600}))
    assert (found.total.checkpoint_bytes, found.total.checkpoint_period_s) == (5 * GB, 600)


@given(st.integers(0, 10**15), st.integers(0, 10**8), st.integers(1, 256))
def test_capacity_leaves_room_for_blocks_inodes_and_logs(data_bytes: int, files: int, volumes: int) -> None:
    exact = (data_bytes + files * (4096 + 512)) * 11 / 10 + volumes * 300 * 10**6
    assert capacity_bytes(data_bytes, files, volumes) == pytest.approx(exact, rel=1e-12, abs=1)


def test_a_demand_per_machine_is_divided_by_its_accelerators() -> None:
    shared = per_accelerator(job(demand={"read_bytes_per_s": 80}), GPU8)
    assert shared.read_bytes_per_s == 10
    assert per_accelerator(job(demand={"samples_per_s": 8, "sample_bytes": 5}), GPU8).samples_per_s == 1
