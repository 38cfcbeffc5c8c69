"""The exact commands that make a machine what its configuration says; golden files hold them word for word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace_agent.actions import Action, Await, Link, Mark, Run, Together, Unless, Write
from headrace_agent.configure import actions_for, configure
from headrace_agent.fields import ConfigError
from headrace_agent.leftovers import Connection, Leftovers, Served
from headrace_agent.machine import Disk
from headrace_agent.node_commands import compute_actions, storage_actions
from headrace_agent.release_commands import CONNECT_AGAIN_SECONDS, release_actions
from headrace_agent.seal_commands import seal_actions
from tests.agent.fabric_configs import (
    DATA,
    FILLER,
    HOSTS,
    SEALED,
    SECTORS,
    VOLUMES,
    compute,
    export,
    filling,
    imported,
    machine,
    mirror_holder,
    mirrored_scratch,
    of,
    part,
    sealed,
    storage,
    striped_filler,
    striped_member,
    uuid_of,
)
from tests.agent.private_volumes import PRIVATE_SETS
from tests.agent.works import process_node

GOLDEN = Path(__file__).parents[1] / "golden" / "agent"
STALE = f"nqn.2014-08.org.nvmexpress:uuid:{'d' * 8}-1111-5111-8111-111111111111"
FULL = Leftovers(
    mounts=("/data", "/var/lib/headrace/volumes/v0"),
    arrays=("/dev/md127",),
    connections=(Connection("nvme3", sealed(1), "connecting"), Connection("nvme2", sealed(0), "live")),
    served=(Served(sealed(0), (HOSTS[0],), (1, 2)),),
    hosts=(HOSTS[0],),
    ports=("1",),
    mapped=("headrace-v0-0-0",),
    soft_roce=("rxe0",),
)


SETS: dict[str, list[Action]] = {
    "storage-tcp": storage_actions(storage(), machine(2), VOLUMES),
    "storage-one-disk": storage_actions(
        storage(volumes=[of("v0", [uuid_of("v0", 0)])], slices=[part("v0", 0)], exports=[export("v0", 0)]),
        machine(1),
        VOLUMES,
    ),
    "storage-roce-striped-filler": storage_actions(striped_filler(fabric="roce"), machine(1), VOLUMES),
    "storage-striped-member": storage_actions(striped_member(), machine(1), VOLUMES),
    "storage-rdma-device": storage_actions(striped_member(fabric="roce"), machine(1, rdma_device="mlx5_0"), VOLUMES),
    "storage-again-when-sealed": storage_actions(storage(), machine(2, sealed=SEALED, filled=SEALED), VOLUMES),
    "storage-fences-a-host": storage_actions(
        storage(), machine(2, sealed=SEALED, filled=SEALED, served={sealed(0): frozenset({HOSTS[0], STALE})}), VOLUMES
    ),
    "seal": seal_actions(storage(), machine(2), VOLUMES),
    "seal-striped-filler": seal_actions(striped_filler(), machine(1), VOLUMES),
    "seal-striped-filler-again": seal_actions(
        striped_filler(), machine(1, filled=frozenset({"headrace-v1-0-0"})), VOLUMES
    ),
    "seal-striped-member": seal_actions(striped_member(), machine(1), VOLUMES),
    "seal-mirror": seal_actions(mirror_holder(), machine(2), VOLUMES),
    "seal-without-dm-flakey": seal_actions(storage(), machine(2, can_seal=False), VOLUMES),
    "compute-tcp": compute_actions(compute(), machine(2), VOLUMES, DATA),
    "compute-roce-one-volume": compute_actions(
        compute(
            fabric="roce",
            volumes=[of("v0", [uuid_of("v0", 0)], hydrated_here=False)],
            imports=[imported(sealed(0), "10.0.1.1", ["v0"])],
        ),
        machine(0),
        VOLUMES,
        DATA,
    ),
    "compute-own-disks": compute_actions(
        compute(fabric="none", volumes=[of("v0", [], members=2), of("v9", [], kind="scratch", members=2)], imports=[]),
        machine(2),
        VOLUMES,
        DATA,
    ),
    "compute-mirrored-scratch": compute_actions(mirrored_scratch(), machine(0), VOLUMES, DATA),
    "compute-shows-a-key": compute_actions(compute(), machine(2, keyed=frozenset({"10.0.1.1"})), VOLUMES, DATA),
    "compute-two-paths": compute_actions(
        compute(
            volumes=[of("v0", [uuid_of("v0", 0)], hydrated_here=False)],
            imports=[imported(sealed(0), address, ["v0"]) for address in ("10.0.1.1", "10.0.1.2")],
        ),
        machine(0),
        VOLUMES,
        DATA,
    ),
    "compute-process-node": actions_for(process_node(Path("/var/lib/headrace")), compute()),
    "storage-process-node": actions_for(process_node(Path("/var/lib/headrace"), "storage"), storage()),
    "storage-process-node-striped": actions_for(process_node(Path("/var/lib/headrace"), "storage"), striped_filler()),
    **PRIVATE_SETS,
    "release": release_actions(FULL),
    "release-of-nothing": release_actions(Leftovers()),
}


@pytest.mark.parametrize("name", SETS)
def test_the_commands_are_exactly_these(name: str, golden: Callable[[Path, str], None]) -> None:
    text = "".join(f"{action}\n" for action in SETS[name])
    assert text
    golden(GOLDEN / f"{name}.txt", text)


def test_there_is_no_golden_file_that_nothing_is_held_to() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(SETS)


def order(actions: list[Action]) -> list[str]:
    return [str(action) for action in actions]


def position(actions: list[Action], part: str) -> int:
    return next(number for number, text in enumerate(order(actions)) if part in text)


def links(actions: list[Action], folder: str) -> set[str]:
    return {one.link.rsplit("/", 1)[1] for one in actions if isinstance(one, Link) and folder in one.link}


def test_a_namespaces_uuid_is_set_before_it_is_enabled_and_the_door_is_opened_last() -> None:
    actions = SETS["seal"]
    assert position(actions, "/device_uuid") < position(actions, "/enable  # unless")
    assert position(actions, "attr_allow_any_host") < position(actions, "namespaces/1")
    last = actions[-1]
    assert isinstance(last, Link)
    assert "/ports/1/subsystems/" in last.link


@pytest.mark.parametrize("name", [name for name in SETS if name.startswith(("seal", "storage"))])
def test_no_subsystem_admits_any_host_and_none_that_is_not_listed(name: str) -> None:
    texts = order(SETS[name])
    assert [text for text in texts if "attr_allow_any_host" in text and "echo -n 0 >" not in text] == []
    assert links(SETS[name], "/allowed_hosts/") <= {*HOSTS, FILLER}


def test_nobody_is_admitted_to_a_spread_volume_while_it_is_filled() -> None:
    assert links(SETS["storage-tcp"], "/allowed_hosts/") == set()
    assert links(SETS["seal"], "/allowed_hosts/") == set(HOSTS)


def test_only_who_fills_a_striped_volume_is_admitted_until_it_is_sealed_and_then_only_readers() -> None:
    assert links(SETS["storage-striped-member"], "/allowed_hosts/") == {FILLER}
    actions = SETS["seal-striped-member"]
    assert position(actions, "wait until marked") < position(
        actions, f"rm /sys/kernel/config/nvmet/subsystems/{filling('v1', 1)}"
    )
    assert position(actions, f"rmdir /sys/kernel/config/nvmet/subsystems/{filling('v1', 1)}") < position(
        actions, "flakey /dev"
    )
    assert position(actions, "dmsetup resume") < position(actions, HOSTS[0])
    assert links(actions, "/allowed_hosts/") == set(HOSTS)


def test_a_fenced_host_is_denied_cut_off_and_waited_for_before_the_door_opens_again() -> None:
    actions = SETS["storage-fences-a-host"]
    steps = [f"allowed_hosts/{STALE}", f"rm /sys/kernel/config/nvmet/ports/1/subsystems/{sealed(0)}", "still", "ln -s"]
    places = [position(actions, step) for step in steps]
    assert places == sorted(places)
    assert isinstance(actions[-1], Link)


def test_a_sealed_volume_is_neither_made_nor_mounted_again() -> None:
    texts = order(SETS["storage-again-when-sealed"])
    assert [text for text in texts if text.startswith(("mdadm", "mkfs", "mount -t xfs"))] == []
    assert links(SETS["storage-again-when-sealed"], "/allowed_hosts/") == set(HOSTS)


def test_a_copy_is_made_over_a_checked_connection_before_it_is_sealed_and_sealed_before_it_is_served() -> None:
    actions = SETS["seal-mirror"]
    steps = ["copy-device ", "dmsetup load headrace-v2-1-0", f"subsystems/{sealed(1)}/namespaces"]
    places = [position(actions, step) for step in steps]
    assert places == sorted(places)
    assert all("--data-digest" in one for one in order(actions) if one.startswith("nvme connect"))


def test_own_members_are_marked_first_and_those_of_others_may_be_gone_only_when_it_is_repeated() -> None:
    for name, is_repeated in {"seal-striped-filler": False, "seal-striped-filler-again": True}.items():
        own, other = [one for one in SETS[name] if isinstance(one, Mark)]
        assert own.device == "/dev/mapper/headrace-v1-0-0"
        assert not own.may_be_gone
        assert other.may_be_gone is is_repeated


def test_a_slice_is_never_left_suspended() -> None:
    assert [text for actions in SETS.values() for text in order(actions) if text.startswith("dmsetup suspend")] == []


def test_readers_never_write_log_or_check_uuids() -> None:
    mounts = [
        action.argv
        for action in SETS["compute-tcp"]
        if isinstance(action, Run) and action.argv[:3] == ("mount", "-t", "xfs") and "v9" not in action.argv[-1]
    ]
    assert len(mounts) == 2
    assert all({"ro", "norecovery", "nouuid"} <= set(argv[4].split(",")) for argv in mounts)


def test_all_connections_are_made_at_once_and_each_gets_its_bound() -> None:
    (together,) = [one for one in SETS["compute-tcp"] if isinstance(one, Together)]
    assert [one.argv[1] for one in together.commands] == ["connect", "connect"]
    bounds = [one.text for one in SETS["compute-tcp"] if isinstance(one, Write) and "fast_io_fail_tmo" in one.path]
    assert bounds == ["30", "30"]


def test_no_device_is_taken_from_under_a_connection_that_is_being_made() -> None:
    actions = SETS["release"]
    removal = position(actions, "rdma link del")
    assert actions[removal - 1] == Await(Unless("idle", "rdma"), CONNECT_AGAIN_SECONDS, may_fail=True)
    removals = [one for one in actions[removal:] if isinstance(one, Run)]
    assert {"rdma", "modprobe"} == {one.argv[0] for one in removals}
    assert {one.unless for one in removals} == {Unless("busy", "rdma")}


def test_what_waits_for_a_dead_connection_is_given_up_before_anything_else_is_undone() -> None:
    texts = order(SETS["release"])
    assert texts[0] == "echo -n 0 > /sys/class/nvme-fabrics/ctl/nvme3/ctrl_loss_tmo"
    assert [text for text in texts if "nvme2/" in text] == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"exports": [export("v0", 0, subsystem_nqn="nqn.x\n; reboot", phase="always")]}, "is not a subsystem NQN"),
        ({"exports": [export("v0", 0, allowed_host_nqns=[""], phase="always")]}, "'' is not a host NQN"),
        ({"slices": [part("v0", 0) | {"name": "../v0"}, part("v0", 0, 1)]}, "is not a plain name"),
        ({"slices": [part("v0", 0) | {"namespace_uuid": "1"}]}, "is not a UUID"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], array_name="a/b")]}, "is not a plain name"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], array_uuid="1")]}, "is not a UUID"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], members=3)]}, "an array of 3 members, and 1 were given"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], stripe_unit_bytes=1000)]}, "not a multiple of 4096"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], raid_level=5)]}, "must be 0, 1 or 10, found 5"),
        ({"volumes": [of("v0", [uuid_of("v0", 0)], raid_level=1)]}, "1 members cannot make a RAID 1"),
        ({"fabric": "none"}, "need the fabric tcp or roce, found 'none'"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_done(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        storage_actions(storage(**changes), machine(2), VOLUMES)


def test_a_machine_without_disks_is_told_so() -> None:
    with pytest.raises(ConfigError, match="no local NVMe disk to serve"):
        storage_actions(storage(), machine(0), VOLUMES)
    with pytest.raises(ConfigError, match="no local NVMe disk for its volumes"):
        compute_actions(compute(), machine(0), VOLUMES, DATA)


@pytest.mark.parametrize("holds", ["ext4 1234", "gpt", "linux_raid_member 99999999-9999-9999-9999-999999999999"])
def test_a_disk_that_holds_what_is_not_this_runs_is_never_written(holds: str) -> None:
    foreign = replace(machine(1), disks=(Disk("/dev/nvme1n1", SECTORS, holds),))
    with pytest.raises(ConfigError, match=rf"/dev/nvme1n1 holds {holds}, which this run did not make"):
        storage_actions(storage(), foreign, VOLUMES)


def test_a_disk_with_this_runs_own_array_is_taken_up_again() -> None:
    own = Disk("/dev/nvme1n1", SECTORS, f"linux_raid_member {storage().slices[0].array_uuid}")
    assert storage_actions(storage(), replace(machine(1), disks=(own,)), VOLUMES)


def test_on_a_machine_an_imported_volume_must_be_described(tmp_path: Path) -> None:
    node = replace(process_node(tmp_path), process_node=False)
    with pytest.raises(ConfigError, match="imports the volumes v0, v1 and does not describe them"):
        configure(node, compute(volumes=[]), str)
