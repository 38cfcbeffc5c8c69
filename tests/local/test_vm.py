"""Guests as command lines, places at the hub, and what is said where they cannot be had."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from headrace.local.process_nodes import ProcessNodes
from headrace.local.vm import accelerator as accelerating
from headrace.local.vm import image
from headrace.local.vm.accelerator import accelerator
from headrace.local.vm.agent_layer import AGENT_REQUIREMENTS
from headrace.local.vm.guest_kernel import uncompressed
from headrace.local.vm.image import build_image
from headrace.local.vm.making import VmUnavailable
from headrace.local.vm.nodes import NoPortLeft, VmNodes
from headrace.local.vm.preparing import images_folder
from headrace.local.vm.qemu import HUB_PORTS, SOFTWARE, Guest, blank_disks, guest_command, hub_command, join_layers

CHECKOUT = Path(__file__).parents[2]


def guest(folder: Path, disks: tuple[Path, ...] = ()) -> Guest:
    return Guest("i-0123456789abcdef0", folder, folder / "hub", 3, folder / "vmlinuz", folder / "initial", disks)


def test_a_guest_joins_the_hub_and_has_a_way_to_this_machine_and_none_into_it(tmp_path: Path) -> None:
    command = guest_command(guest(tmp_path))
    networks = [command[place + 1] for place, word in enumerate(command) if word == "-netdev"]
    assert networks == ["stream,id=n0,server=off,addr.type=unix,addr.path=hub/3.sock", "user,id=n1"]
    line = command[command.index("-append") + 1]
    assert "headrace.address=192.168.77.14" in line
    assert command[command.index("-accel") + 1].startswith("tcg")


def test_an_emulated_processor_keeps_its_barriers_since_another_one_could_come(tmp_path: Path) -> None:
    command = guest_command(guest(tmp_path))
    assert command[command.index("-smp") + 1] == "1,maxcpus=2"


def test_each_disk_is_an_nvme_controller_with_a_serial_number_that_fits(tmp_path: Path) -> None:
    disks = blank_disks(tmp_path, 3, 2**31)
    assert [one.stat().st_size for one in disks] == [2**31] * 3
    assert sum(one.stat().st_blocks for one in disks) == 0
    devices = [word for word in guest_command(guest(tmp_path, disks)) if word.startswith("nvme,")]
    serials = [device.partition("serial=")[2] for device in devices]
    assert len(set(serials)) == 3
    assert max(map(len, serials)) <= 20


def test_the_hub_listens_on_sockets_of_its_folder_only(tmp_path: Path) -> None:
    command = hub_command(tmp_path)
    sockets = [word for word in command if "server=on" in word]
    assert len(sockets) == HUB_PORTS
    assert all("addr.type=unix" in word for word in sockets)


def test_layers_are_loaded_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"first")
    (tmp_path / "b").write_bytes(b"second")
    assert join_layers((tmp_path / "a", tmp_path / "b"), tmp_path / "c").read_bytes() == b"firstsecond"


def test_each_guest_has_its_own_address_until_no_port_is_left(tmp_path: Path) -> None:
    processes = ProcessNodes(tmp_path, {}, run_bucket="b", stop_grace_seconds=0)
    nodes = VmNodes(processes, tmp_path, {}, lambda: pytest.fail("nothing starts"), lambda _: pytest.fail("nor here"))
    addresses = [nodes.address("run", f"i-{number}") for number in range(HUB_PORTS)]
    assert len(set(addresses)) == HUB_PORTS
    with pytest.raises(NoPortLeft, match=f"at most {HUB_PORTS} virtual machines"):
        nodes.address("run", "one-more")
    nodes.present(frozenset({("run", "i-3")}))
    assert nodes.address("run", "next") == addresses[3]


def test_what_is_missing_for_guests_is_named_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "HOST_PROGRAMS", ("no-such-program", "sh"))
    with pytest.raises(VmUnavailable, match=r"need no-such-program, not found here.*apt-get install"):
        build_image(tmp_path, str)


def test_images_are_kept_where_asked_or_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_VM_FOLDER", str(tmp_path))
    assert images_folder() == tmp_path
    monkeypatch.delenv("HEADRACE_VM_FOLDER")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert images_folder() == Path("/cache/headrace/vm")


def test_a_kernel_is_unpacked_where_it_is_packed_as_expected_and_else_taken_as_it_is() -> None:
    inner, packed = b"\x7fELF the kernel", lzma.compress(b"\x7fELF the kernel")
    assert uncompressed(b"setup code" + packed + b"signature") == inner
    for other in (b"setup code", b"setup code" + lzma.compress(b"not a program"), b"setup code" + packed[:20]):
        assert uncompressed(other) == other


def test_guests_get_the_packages_that_the_agent_declares() -> None:
    declared = (CHECKOUT / "agent/pyproject.toml").read_text()
    assert all(f'"{one}"' in declared for one in AGENT_REQUIREMENTS)


QEMU_THAT = {
    "boots": "#!/bin/sh\necho 'Linux version 6.1'\n",
    "hangs": "#!/bin/sh\necho 'Linux version 6.1'\nexec sleep 60\n",
    "says nothing": "#!/bin/sh\nexit 0\n",
    "fails": "#!/bin/sh\necho 'Linux version 6.1'\nexit 1\n",
}


@pytest.mark.parametrize("what", QEMU_THAT)
def test_guests_run_on_virtualisation_only_where_a_kernel_boots_by_it(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qemu-system-x86_64").write_text(QEMU_THAT[what])
    (tmp_path / "qemu-system-x86_64").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(accelerating, "KVM_DEVICE", tmp_path)
    monkeypatch.setattr(accelerating, "TRY_SECONDS", 0.3)
    expected = "kvm" if what == "boots" else SOFTWARE
    assert accelerator(tmp_path / "vmlinuz", tmp_path) == expected
    (tmp_path / "qemu-system-x86_64").unlink()
    assert accelerator(tmp_path / "vmlinuz", tmp_path) == expected


def test_without_a_device_guests_are_emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerating, "KVM_DEVICE", tmp_path / "kvm")
    assert accelerator(tmp_path / "vmlinuz", tmp_path) == SOFTWARE
