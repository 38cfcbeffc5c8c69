"""What a node lacks is named before anything is changed on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace_agent import configure as configuring
from headrace_agent.config import NodeConfig
from headrace_agent.configure import configure, fabric_in_words, release, seal
from headrace_agent.fields import ConfigError
from headrace_agent.preflight import missing, report
from tests.agent.fabric_configs import compute, mirror_holder, mirrored_scratch, storage
from tests.agent.works import process_node


def lacks(config: NodeConfig, *absent: str, has_rdma_device: bool = False) -> list[str]:
    told = missing(
        config,
        has_rdma_device=has_rdma_device,
        has_module=lambda name: name not in absent,
        has_program=lambda name: name not in absent,
    )
    return [
        line.rsplit("no module ", 1)[-1].removeprefix("the program ").removesuffix(" is not installed") for line in told
    ]


def test_a_node_that_has_everything_lacks_nothing() -> None:
    assert lacks(storage()) == lacks(compute()) == lacks(mirror_holder()) == []


@pytest.mark.parametrize(
    ("config", "absent", "told"),
    [
        (storage(), ["nvmet-tcp", "nvmet-rdma", "nvme-tcp"], ["nvmet-tcp"]),
        (storage(fabric="roce"), ["nvmet-tcp", "nvmet-rdma"], ["nvmet-rdma"]),
        (compute(), ["nvme-tcp", "nvmet-tcp", "nvme"], ["nvme-tcp", "nvme"]),
        (compute(fabric="roce"), ["rdma_rxe", "rdma"], ["rdma_rxe", "rdma"]),
        (compute(), ["overlay"], ["overlay"]),
        (compute(imports=[], fabric="none"), ["nvme-tcp", "nvme"], []),
        (mirrored_scratch(), ["raid10", "raid1"], ["raid10"]),
        (mirror_holder(), ["nvme"], ["nvme"]),
        (storage(), ["dm-flakey"], []),
    ],
)
def test_what_it_lacks_is_named_and_nothing_that_it_does_not_need(
    config: NodeConfig, absent: list[str], told: list[str]
) -> None:
    assert lacks(config, *absent) == told


def test_an_rdma_device_spares_soft_roce() -> None:
    assert lacks(compute(fabric="roce"), "rdma_rxe", "rdma", has_rdma_device=True) == []


def test_roce_in_software_is_never_taken_unasked() -> None:
    unasked = compute(fabric="roce", soft_roce=False)
    assert "has no RDMA device with reliable connections" in lacks(unasked)[0]
    assert lacks(unasked, has_rdma_device=True) == lacks(compute(soft_roce=False)) == []


def test_a_node_that_cannot_do_the_fabric_is_named_with_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuring, "missing", lambda _config, **_facts: ["the kernel 6.1 has no module nvmet-rdma"])
    node = replace(process_node(tmp_path, "storage"), process_node=False)
    told = "node node-a cannot be a storage node of the fabric 'roce': the kernel 6.1 has no module nvmet-rdma"
    with pytest.raises(ConfigError, match=told):
        configure(node, storage(fabric="roce"), str)


@pytest.mark.parametrize(
    ("config", "device", "words"),
    [
        (storage(), None, "NVMe/TCP at 10.0.1.5"),
        (compute(fabric="roce"), None, "NVMe/RoCE at 10.0.1.5, in software"),
        (compute(fabric="roce"), "mlx5_0", "NVMe/RoCE at 10.0.1.5, by the device mlx5_0"),
        (compute(fabric="none", imports=[]), None, None),
    ],
)
def test_the_fabric_is_announced_as_it_is(config: NodeConfig, device: str | None, words: str | None) -> None:
    assert fabric_in_words(config, device) == words


def test_the_report_names_every_ability_and_what_is_missing_for_it(tmp_path: Path) -> None:
    found = report(tmp_path, tmp_path)
    assert {one["name"] for one in found["abilities"]} >= {"serve over NVMe/TCP", "read over NVMe/RoCE"}
    assert all(one["can"] == (not one["missing"]) for one in found["abilities"])
    assert found["keys_demanded"] == "unknown: nvmet is not loaded"


def test_a_process_node_seals_and_releases_nothing_of_the_machine(tmp_path: Path) -> None:
    said: list[str] = []
    seal(process_node(tmp_path, "storage"), storage(), said.append)
    assert said
    assert all(line.startswith("not executed here: ") for line in said)
    assert release(process_node(tmp_path), said.append) == []
