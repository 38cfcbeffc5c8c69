"""A volume on a storage node that one compute node has for itself: served, never sealed, and salvaged."""

from __future__ import annotations

import pytest

from headrace_agent.actions import Mark, Run
from headrace_agent.fields import ConfigError
from tests.agent.fabric_configs import HOSTS, part, uuid_of
from tests.agent.private_volumes import PRIVATE_SETS as SETS
from tests.agent.private_volumes import private, salvage
from tests.agent.test_configure import order, position


def test_a_private_volume_is_served_to_its_node_alone_before_and_after_the_data_set_is_sealed() -> None:
    doors = [f"{private('c0')}/allowed_hosts/{host}" for host in HOSTS]
    for name in ("storage-private", "storage-private-again-when-sealed"):
        texts = order(SETS[name])
        assert [any(door in text for text in texts) for door in doors] == [True, False]
        assert [text for text in texts if text.startswith("rm ")] == []
        assert [text for text in texts if text.startswith(("mdadm", "mkfs")) and "v5" in text] == []


def test_sealing_does_nothing_to_a_private_volume() -> None:
    assert [text for text in order(SETS["seal-private"]) if "v5" in text or private("c0") in text] == []
    assert [uuid for uuid in (uuid_of("v5", 0, 0), uuid_of("v5", 0, 1)) if uuid in str(SETS["seal-private"])] == []


def test_a_private_volume_is_no_part_of_the_data() -> None:
    assert order(SETS["compute-private"])[-1].startswith("mount --bind /var/lib/headrace/volumes/v0 /data")


def test_a_salvage_closes_the_door_and_waits_before_it_takes_the_volume_and_puts_it_away_in_the_end() -> None:
    actions = SETS["salvage"]
    door = f"/sys/kernel/config/nvmet/subsystems/{private('c0')}"
    steps = [
        f"rm {door}/allowed_hosts/{HOSTS[0]}",
        f"rm /sys/kernel/config/nvmet/ports/1/subsystems/{private('c0')}",
        f"{door}/namespaces/1/enable",
        f"rmdir {door}",
        "wait until still: /dev/mapper/headrace-v5-0-1",
        "mdadm --assemble",
        "mount -t xfs",
        "umount",
    ]
    places = [position(actions, step) for step in steps]
    assert places == sorted(places)
    assert order(actions)[-1].startswith("mdadm --stop /dev/md/run-1-v5")


def test_a_salvage_never_makes_or_wipes_anything() -> None:
    programs = {one.argv[:2] for one in SETS["salvage"] if isinstance(one, Run)}
    assert {argv for argv in programs if argv[0] in ("mkfs.xfs", "wipefs", "dd") or "--create" in argv} == set()
    assert [one for one in SETS["salvage"] if isinstance(one, Mark)] == []
    assert "v0" not in "".join(order(SETS["salvage"]))


def test_a_door_that_is_gone_is_only_made_sure_of() -> None:
    texts = order(salvage(None).close_door)
    assert [text for text in texts if text.startswith(("rm ", "rmdir "))] == [
        text for text in texts if "# unless absent: " in text
    ]
    assert not [text for text in texts if "namespaces" in text or "allowed_hosts" in text]


def test_a_left_volume_is_found_where_it_was_cut() -> None:
    made = {one for one in order(SETS["storage-private"]) if one.startswith("dmsetup create headrace-v5")}
    assert {one for one in order(SETS["salvage"]) if one.startswith("dmsetup create")} == made
    with pytest.raises(ConfigError, match=f"no slice {uuid_of('v5', 0, 0)}, {uuid_of('v5', 0, 1)} of the volume v5"):
        salvage(None, slices=[part("v0", 0)])
