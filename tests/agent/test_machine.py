"""What a machine has and what is set up on it, read from a kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_agent import machine as facts
from headrace_agent.kernel_names import NotThere, device_of, with_devices, with_names
from headrace_agent.leftovers import Connection, Leftovers, Served, leftovers
from headrace_agent.machine import Disk, rdma_device, this_machine

UUID = "00000000-0000-5000-8000-000000000000"
NQN = "nqn.2026-01.io.headrace:run-1:sealed-0"


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no program of this machine be asked."""
    monkeypatch.setattr(facts, "_output", lambda argv: "TYPE=ext4\nUUID=1\n" if argv[-1] == "/dev/nvme1n1" else "")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def disk(system: Path, name: str, serial: str, sectors: int, **files: str) -> None:
    put(system / "block" / name / "size", str(sectors))
    for file, value in {"serial": serial, **files}.items():
        put(system / "block" / name / "device" / file, value)


def test_only_local_disks_are_used_in_an_order_that_survives_a_reboot(tmp_path: Path) -> None:
    disk(tmp_path, "nvme0n1", "vol1", 100, model="Amazon Elastic Block Store", transport="pcie")
    disk(tmp_path, "nvme2n1", "AWS-A", 200, model="Amazon EC2 NVMe Instance Storage", transport="pcie")
    disk(tmp_path, "nvme1n1", "AWS-B", 300, model="Amazon EC2 NVMe Instance Storage", transport="pcie")
    disk(tmp_path, "nvme3n1", "x", 400, model="Linux", transport="tcp")
    disk(tmp_path, "nvme4n1", "z", 500, model="headrace", subsysnqn=NQN)
    put(tmp_path / "block/nvme4n1/device/nvme7/transport", "rdma")
    disk(tmp_path, "nvme0c0n1", "y", 500)
    disk(tmp_path, "sda", "z", 600)
    found = this_machine("127.0.0.1", tmp_path, tmp_path / "nvmet")
    assert found.disks == (Disk("/dev/nvme2n1", 200), Disk("/dev/nvme1n1", 300, "ext4 1"))


def test_a_disk_that_is_cut_already_is_not_asked_what_it_holds(tmp_path: Path) -> None:
    disk(tmp_path, "nvme1n1", "AWS-B", 300, transport="pcie")
    put(tmp_path / "block/nvme1n1/holders/dm-0/dm/name", "headrace-v0-0-0")
    assert this_machine("127.0.0.1", tmp_path, tmp_path / "nvmet").disks == (Disk("/dev/nvme1n1", 300),)


def test_the_network_device_is_the_one_with_the_nodes_address(tmp_path: Path) -> None:
    (tmp_path / "block").mkdir()
    (tmp_path / "class/net/lo").mkdir(parents=True)
    assert this_machine("127.0.0.1", tmp_path, tmp_path).network_device == "lo"


def test_an_rdma_device_without_reliable_connections_is_not_used(tmp_path: Path) -> None:
    for name, driver in {"efa_0": "efa", "rxe0": "rdma_rxe"}.items():
        (tmp_path / "drivers" / driver).mkdir(parents=True)
        device = tmp_path / "class/infiniband" / name / "device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(tmp_path / "drivers" / driver)
    assert rdma_device(tmp_path) is None
    (tmp_path / "drivers/mlx5_core").mkdir()
    (tmp_path / "class/infiniband/mlx5_0/device").mkdir(parents=True)
    (tmp_path / "class/infiniband/mlx5_0/device/driver").symlink_to(tmp_path / "drivers/mlx5_core")
    assert rdma_device(tmp_path) == "mlx5_0"


def test_a_namespace_is_found_by_its_uuid_and_never_by_a_hidden_path(tmp_path: Path) -> None:
    put(tmp_path / "block/nvme0c0n1/uuid", UUID)
    with pytest.raises(NotThere, match=UUID):
        device_of(UUID, tmp_path)
    put(tmp_path / "block/nvme3n2/uuid", UUID)
    assert with_devices(f"if=namespace({UUID})", tmp_path) == "if=/dev/nvme3n2"


def test_a_setting_of_a_subsystem_is_written_for_each_of_its_paths(tmp_path: Path) -> None:
    for name, nqn in {"nvme1": NQN, "nvme2": f"{NQN}0", "nvme5": NQN}.items():
        put(tmp_path / "class/nvme-fabrics/ctl" / name / "subsysnqn", nqn)
    assert with_names(f"/x/controllers({NQN})/y", tmp_path) == ["/x/nvme1/y", "/x/nvme5/y"]
    assert with_names("/x/y", tmp_path) == ["/x/y"]


def test_requests_of_a_namespace_go_through_each_device_with_its_uuid_hidden_or_not(tmp_path: Path) -> None:
    for name, uuid in {"nvme3n2": UUID, "nvme3c4n2": UUID, "nvme3c5n2": UUID, "nvme3n1": UUID[::-1]}.items():
        put(tmp_path / "block" / name / "uuid", uuid)
    assert with_names(f"/b/queues({UUID})/q", tmp_path) == ["/b/nvme3c4n2/q", "/b/nvme3c5n2/q", "/b/nvme3n2/q"]


def test_everything_that_is_set_up_is_found_and_nothing_of_others(tmp_path: Path) -> None:
    system, nvmet = tmp_path / "sys", tmp_path / "nvmet"
    put(tmp_path / "mounts", "a / ext4\nb /n/volumes/v0 xfs\nc /n/volumes/v1 xfs\nd /data overlay\ne /data2 xfs")
    put(system / "block/dm-0/dm/name", "headrace-v0-0-0")
    put(system / "block/dm-1/dm/name", "vg-root")
    put(system / "block/md127/slaves/dm-0/dm/name", "headrace-v0-0-0")
    put(system / "block/md126/slaves/sda/device/model", "disk")
    put(system / "block/md125/slaves/nvme3n1/device/subsysnqn", NQN)
    put(system / "class/nvme-fabrics/ctl/nvme3/subsysnqn", NQN)
    put(system / "class/nvme-fabrics/ctl/nvme3/state", "connecting")
    put(system / "class/nvme-fabrics/ctl/nvme4/subsysnqn", "nqn.2014-08.com.other:x")
    (nvmet / "subsystems" / NQN / "namespaces/2").mkdir(parents=True)
    (nvmet / "subsystems" / NQN / "allowed_hosts/host-a").mkdir(parents=True)
    (nvmet / "hosts/host-a").mkdir(parents=True)
    (nvmet / "ports/1").mkdir(parents=True)
    (system / "class/infiniband/rxe0").mkdir(parents=True)
    found = leftovers([Path("/n/volumes"), Path("/data")], system, nvmet, tmp_path / "mounts")
    assert found == Leftovers(
        mounts=("/data", "/n/volumes/v1", "/n/volumes/v0"),
        arrays=("/dev/md125", "/dev/md127"),
        connections=(Connection("nvme3", NQN, "connecting"),),
        served=(Served(NQN, ("host-a",), (2,)),),
        hosts=("host-a",),
        ports=("1",),
        mapped=("headrace-v0-0-0",),
        soft_roce=("rxe0",),
    )
    assert len(found.in_words()) == 11


def test_a_machine_with_nothing_set_up_has_nothing_left(tmp_path: Path) -> None:
    put(tmp_path / "mounts", "a / ext4")
    assert leftovers([Path("/data")], tmp_path, tmp_path, tmp_path / "mounts").in_words() == []
