"""A storage node sees that it is used: by a connected host, or by its disks being read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_agent.serving import Serving

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "proc/net").mkdir(parents=True)
    for name in ("nvme0n1", "nvme1n1", "nvme0c0n1", "sda"):
        (tmp_path / "sys/block" / name).mkdir(parents=True)
        set_reads(tmp_path, name, 100)
    set_sockets(tmp_path)
    return tmp_path


def set_reads(machine: Path, disk: str, reads: int) -> None:
    (machine / "sys/block" / disk / "stat").write_text(f"   {reads}   0  800  12  5  0  40  3  0  15  15\n")


def set_sockets(machine: Path, *rows: str) -> None:
    (machine / "proc/net/tcp").write_text(HEADER + "".join(f"   0: {row} 00000000:00000000\n" for row in rows))


def serving(machine: Path) -> Serving:
    return Serving(machine / "proc", machine / "sys")


def test_a_machine_that_nobody_uses_serves_nobody(machine: Path) -> None:
    assert not serving(machine).is_serving()


@pytest.mark.parametrize(
    ("row", "is_use"),
    [
        ("0100000A:1144 0200000A:C350 01", True),
        ("00000000:1144 00000000:0000 0A", False),
        ("0100000A:1144 0200000A:C350 06", False),
        ("0100000A:C350 0200000A:1144 01", False),
        ("0100000A:0016 0200000A:C350 01", False),
    ],
    ids=["connected host", "listens", "time wait", "is itself a host", "ssh"],
)
def test_only_an_established_connection_to_the_nvme_port_is_a_host(machine: Path, row: str, *, is_use: bool) -> None:
    set_sockets(machine, row)
    assert serving(machine).is_serving() == is_use


@pytest.mark.parametrize(
    ("disk", "is_use"), [("nvme0n1", True), ("nvme1n1", True), ("sda", False), ("nvme0c0n1", False)]
)
def test_reads_of_a_local_disk_since_the_last_question_are_use(machine: Path, disk: str, *, is_use: bool) -> None:
    asked = serving(machine)
    set_reads(machine, disk, 101)
    assert asked.is_serving() == is_use
    assert not asked.is_serving(), "and none since then"


def test_a_machine_without_these_files_serves_nobody(tmp_path: Path) -> None:
    assert not serving(tmp_path).is_serving()


def test_this_very_machine_can_be_asked() -> None:
    assert Serving().is_serving() in (True, False)
