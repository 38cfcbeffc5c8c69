"""States that actions are spared for, each read from files like the kernel's or from the bytes of a device."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from headrace_agent import kernel_names, states
from headrace_agent.actions import Unless
from headrace_agent.kernel_names import namespace
from headrace_agent.states import MD_AT, MD_MAGIC, MD_UUID_AT, XFS_IN_PROGRESS_AT, XFS_UUID_AT, holds

UUID = "11111111-2222-5333-8444-555555555555"
NAMESPACE = namespace(UUID)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a connection that holds the one namespace there is, a mark being all that it holds."""
    monkeypatch.setattr(kernel_names.is_served, "__defaults__", (tmp_path,))
    monkeypatch.setattr(states, "with_devices", lambda text: text.replace(NAMESPACE, str(tmp_path / "device")))
    (tmp_path / "device").write_bytes(b"filled\n".ljust(4096, b"\0"))
    folder = tmp_path / "ctl/nvme1/nvme1c1n1"
    folder.mkdir(parents=True)
    (folder / "uuid").write_text(UUID)
    (tmp_path / "block").mkdir()
    (tmp_path / "block/nvme1c1n1").symlink_to(folder)
    return folder.parent


def test_a_member_is_told_when_it_has_the_mark_or_nobody_serves_it_any_more(served: Path) -> None:
    (served / "state").write_text("live\n")
    assert holds(Unless("told", f"{NAMESPACE}=filled"))
    assert not holds(Unless("told", f"{NAMESPACE}=full"))
    (served / "state").write_text("connecting\n")
    assert holds(Unless("told", f"{NAMESPACE}=full"))
    assert holds(Unless("told", f"{namespace(UUID[::-1])}=full")), "a namespace that is not there"


def xfs(path: Path, *, is_whole: bool = True) -> str:
    """Write the start of an XFS."""
    block = bytearray(4096)
    block[:4] = b"XFSB"
    block[XFS_UUID_AT : XFS_UUID_AT + 16] = uuid.UUID(UUID).bytes
    block[XFS_IN_PROGRESS_AT] = not is_whole
    path.write_bytes(block)
    return str(path)


def member(path: Path, array: str = UUID) -> str:
    """Write the start of an array's member, its metadata of version 1.2."""
    block = bytearray(8192)
    block[MD_AT : MD_AT + 4] = MD_MAGIC.to_bytes(4, "little")
    block[MD_AT + MD_UUID_AT : MD_AT + MD_UUID_AT + 16] = uuid.UUID(array).bytes
    path.write_bytes(block)
    return str(path)


def test_a_path_is_there_or_not_and_a_link_that_leads_nowhere_is_neither(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert holds(Unless("exists", str(tmp_path)))
    assert not holds(Unless("exists", f"{tmp_path}/li*"))
    assert not holds(Unless("absent", str(tmp_path / "link")))
    assert holds(Unless("absent", str(tmp_path / "nowhere")))
    assert holds(Unless("present", f"{tmp_path},/proc"))
    assert not holds(Unless("present", f"{tmp_path},/nowhere"))


def test_files_of_the_kernel_and_its_list_of_mounts_are_read(tmp_path: Path) -> None:
    (tmp_path / "enable").write_text("1\n")
    assert holds(Unless("reads", f"{tmp_path}/enable=1"))
    assert not holds(Unless("reads", f"{tmp_path}/enable=0"))
    assert not holds(Unless("reads", f"{tmp_path}/absent=1"))
    assert holds(Unless("mounted", "/proc"))
    assert holds(Unless("unmounted", str(tmp_path)))


def test_a_connection_counts_for_its_own_address_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_names.controllers, "__defaults__", (tmp_path,))
    folder = tmp_path / "class/nvme-fabrics/ctl/nvme0"
    folder.mkdir(parents=True)
    (folder / "subsysnqn").write_text("nqn.a\n")
    (folder / "address").write_text("traddr=10.0.0.1,trsvcid=4420\n")
    assert holds(Unless("connected", "nqn.a@10.0.0.1"))
    assert not holds(Unless("connected", "nqn.a@10.0.0.11"))
    assert not holds(Unless("connected", "nqn@10.0.0.1"))
    assert not holds(Unless("disconnected", "nqn.a"))
    assert holds(Unless("disconnected", "nqn.b"))
    assert not holds(Unless("reachable", "nqn.a"))
    (folder / "state").write_text("live\n")
    assert holds(Unless("reachable", "nqn.a"))


def test_rdma_devices_are_busy_while_a_connection_over_them_is_there_in_any_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_names.connections, "__defaults__", (tmp_path,))
    folder = tmp_path / "class/nvme-fabrics/ctl/nvme0"
    folder.mkdir(parents=True)
    (folder / "state").write_text("deleting\n")
    for transport, is_busy in {"tcp": False, "rdma": True}.items():
        (folder / "transport").write_text(f"{transport}\n")
        assert (holds(Unless("busy", "rdma")), holds(Unless("idle", "rdma"))) == (is_busy, not is_busy)


def test_a_file_system_counts_when_it_is_whole_and_the_one_that_is_meant(tmp_path: Path) -> None:
    assert holds(Unless("formatted", f"{xfs(tmp_path / 'a')}={UUID}"))
    assert not holds(Unless("formatted", f"{xfs(tmp_path / 'a')}={UUID[::-1].replace('-', '')}"))
    assert not holds(Unless("formatted", f"{xfs(tmp_path / 'b', is_whole=False)}={UUID}"))
    with pytest.raises(OSError, match="No such file"):
        holds(Unless("formatted", f"{tmp_path}/none={UUID}"))


def test_an_array_is_known_by_the_uuid_on_its_members(tmp_path: Path) -> None:
    first, second = member(tmp_path / "1"), member(tmp_path / "2")
    stranger = member(tmp_path / "3", UUID.replace("1", "9"))
    (tmp_path / "blank").write_bytes(bytes(8192))
    assert holds(Unless("striped", f"{UUID}={first},{second}"))
    assert not holds(Unless("striped", f"{UUID}={first},{tmp_path}/blank"))
    assert holds(Unless("begun", f"{UUID}={tmp_path}/blank,{second}"))
    assert not holds(Unless("begun", f"{UUID}={tmp_path}/blank,{stranger}"))
    with pytest.raises(OSError, match="No such file"):
        holds(Unless("begun", f"{UUID}={first},{tmp_path}/gone"))


def test_a_mark_counts_when_it_is_all_that_the_first_block_holds(tmp_path: Path) -> None:
    (tmp_path / "member").write_bytes(b"headrace filled 1\n".ljust(4096, b"\0"))
    assert holds(Unless("marked", f"{tmp_path}/member=headrace filled 1"))
    assert not holds(Unless("marked", f"{tmp_path}/member=headrace filled"))
