"""The exact commands that make a machine what its configuration says; golden files hold them word for word."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.actions import Action, Link, Run, Unless, Write
from headrace_agent.config import NodeConfig, parse_config
from headrace_agent.configure import actions_for, configure
from headrace_agent.fields import ConfigError
from headrace_agent.machine import Disk, Machine
from headrace_agent.node_commands import compute_actions, seal_actions, storage_actions
from headrace_agent.slice_commands import ALIGN_SECTORS, cut
from headrace_agent.stripe_commands import make_file_system
from tests.agent.surroundings import config, volume
from tests.agent.works import process_node

GOLDEN = Path(__file__).parents[1] / "golden" / "agent"
VOLUMES, DATA = Path("/var/lib/headrace/volumes"), Path("/data")
HOSTS = [f"nqn.2014-08.org.nvmexpress:uuid:{digit * 8}-1111-5111-8111-111111111111" for digit in "ab"]
SECTORS = 3_662_109_375


def machine(disks: int) -> Machine:
    return Machine(tuple(Disk(f"/dev/nvme{number}n1", SECTORS) for number in range(1, disks + 1)), "ens5", "10.0.1.5")


def export(number: int, volume_id: str, slice_index: int) -> dict[str, Any]:
    return {
        "subsystem_nqn": "nqn.2026-01.io.headrace:run-1:storage-0",
        "namespace_id": number,
        "namespace_uuid": f"{number:08d}-0000-5000-8000-000000000000",
        "volume_id": volume_id,
        "slice_index": slice_index,
        "allowed_host_nqns": HOSTS,
    }


def imported(number: int, volume_id: str) -> dict[str, Any]:
    return {
        "node_id": f"storage-{number}",
        "address": f"10.0.1.{number}",
        "service_port": 4420,
        "subsystem_nqn": f"nqn.2026-01.io.headrace:run-1:storage-{number}",
        "volume_ids": [volume_id],
        "queues": 12,
        "shared_folder": None,
    }


def read(**changes: Any) -> NodeConfig:
    return parse_config(json.dumps(config(**changes)))


def other(volume_id: str, **changes: Any) -> dict[str, Any]:
    digit = volume_id[-1]
    uuids = {
        "array_uuid": f"{digit * 8}-2222-5333-8444-555555555555",
        "filesystem_uuid": f"{digit * 8}-bbbb-5ccc-8ddd-eeeeeeeeeeee",
    }
    return volume(volume_id, **uuids) | changes


def storage(**changes: Any) -> NodeConfig:
    given = {
        "role": "storage",
        "volumes": [volume("v0", stripe_unit_bytes=524288)],
        "exports": [export(1, "v0", 0), export(2, "v0", 1)],
    }
    return read(**given | changes)


def compute(**changes: Any) -> NodeConfig:
    given = {
        "volumes": [other(name, hydrated_here=False) for name in ("v0", "v1")]
        + [other("s9", kind="scratch", hydrated_here=False)],
        "imports": [imported(1, "v0"), imported(2, "v1")],
    }
    return read(**given | changes)


SETS: dict[str, list[Action]] = {
    "storage-tcp": storage_actions(storage(), machine(2), VOLUMES),
    "storage-one-disk": storage_actions(
        storage(volumes=[volume(members=1)], exports=[export(1, "v0", 0)]), machine(1), VOLUMES
    ),
    "storage-roce-two-volumes": storage_actions(
        storage(
            fabric="roce",
            volumes=[volume("v0"), other("v1")],
            exports=[export(n + 1, f"v{n // 2}", n % 2) for n in range(4)],
        ),
        machine(2),
        VOLUMES,
    ),
    "storage-seal": seal_actions(storage(), machine(2), VOLUMES),
    "compute-tcp": compute_actions(compute(), machine(2), VOLUMES, DATA),
    "compute-roce-one-volume": compute_actions(
        compute(fabric="roce", volumes=[volume(hydrated_here=False)], imports=[imported(1, "v0")]),
        machine(0),
        VOLUMES,
        DATA,
    ),
    "compute-own-disks": compute_actions(
        compute(fabric="none", volumes=[volume(), other("s9", kind="scratch")], imports=[]), machine(2), VOLUMES, DATA
    ),
    "compute-process-node": actions_for(process_node(Path("/var/lib/headrace")), compute()),
    "storage-process-node-striped": actions_for(
        process_node(Path("/var/lib/headrace"), "storage"),
        storage(volumes=[volume(members=4)], imports=[imported(1, "v0")]),
    ),
    "storage-process-node": actions_for(process_node(Path("/var/lib/headrace"), "storage"), storage()),
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


def test_a_namespaces_uuid_is_set_before_it_is_enabled_and_the_door_is_opened_last() -> None:
    actions = SETS["storage-tcp"]
    assert position(actions, "/device_uuid") < position(actions, "echo -n 1 > ")
    assert position(actions, "attr_allow_any_host") < position(actions, "namespaces/1")
    last = actions[-1]
    assert isinstance(last, Link)
    assert "/ports/1/subsystems/" in last.link


def test_no_host_is_allowed_that_is_not_listed() -> None:
    texts = order(SETS["storage-tcp"])
    assert [text for text in texts if "attr_allow_any_host" in text and "echo -n 0 >" not in text] == []
    assert {text.split()[3].rsplit("/", 1)[1] for text in texts if "allowed_hosts" in text} == set(HOSTS)


def test_readers_never_write_log_or_check_uuids() -> None:
    mounts = [
        action.argv
        for action in SETS["compute-tcp"]
        if isinstance(action, Run)
        and "xfs" in action.argv
        and action.argv[0] == "mount"
        and "v" in action.argv[-1].rsplit("/", 1)[1]
    ]
    assert len(mounts) == 2
    assert all({"ro", "norecovery", "nouuid"} <= set(argv[4].split(",")) for argv in mounts)


@pytest.mark.parametrize(
    ("stripe_bytes", "log_bytes"),
    [(4096, 4096), (131072, 131072), (262144, 262144), (524288, 32768), (1048576, 32768)],
)
def test_the_log_stripe_is_one_that_mkfs_takes(stripe_bytes: int, log_bytes: int) -> None:
    made = make_file_system(storage(volumes=[volume(stripe_unit_bytes=stripe_bytes)]).volumes[0])
    assert isinstance(made, Run)
    assert made.argv[made.argv.index("-l") + 1] == f"su={log_bytes}"


@given(st.integers(1, 8), st.integers(1, 24), st.integers(10**6, 10**11))
def test_slices_never_overlap_and_stay_on_their_disk(disks: int, slices: int, sectors: int) -> None:
    exports = storage(exports=[export(n + 1, "v0", n) for n in range(slices)]).exports
    cuts = cut(exports, [Disk(f"/dev/nvme{number}n1", sectors) for number in range(disks)])
    assert len(cuts) == slices
    by_disk: dict[str, list[tuple[int, int]]] = {}
    for one in cuts.values():
        by_disk.setdefault(one.disk.path, []).append((int(one.start), int(one.start) + int(one.length)))
    assert max(map(len, by_disk.values())) - min(map(len, by_disk.values())) <= 1
    for spans in by_disk.values():
        flat = [0] + [edge for span in sorted(spans) for edge in span] + [sectors]
        assert flat == sorted(flat)
        assert all(start % ALIGN_SECTORS == 0 for start, _ in spans)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"exports": [export(1, "v0", 0) | {"subsystem_nqn": "nqn.x\n; reboot"}, export(2, "v0", 1)]},
            "is not a subsystem NQN",
        ),
        ({"exports": [export(1, "v0", 0) | {"allowed_host_nqns": [""]}, export(2, "v0", 1)]}, "'' is not a host NQN"),
        ({"exports": [export(1, "../v0", 0)]}, "is not a plain name"),
        ({"volumes": [volume(array_name="a/b")]}, "is not a plain name"),
        ({"volumes": [volume(array_uuid="1")]}, "is not a UUID"),
        ({"volumes": [volume(members=3)]}, "a stripe over 3 members, and 2 are on this machine"),
        ({"volumes": [volume(stripe_unit_bytes=1000)]}, "not a multiple of 4096"),
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
        compute_actions(compute(volumes=[volume()]), machine(0), VOLUMES, DATA)


def test_on_a_machine_an_imported_volume_must_be_described(tmp_path: Path) -> None:
    node = replace(process_node(tmp_path), process_node=False)
    with pytest.raises(ConfigError, match="imports the volumes v0, v1 and does not describe them"):
        configure(node, compute(volumes=[]), str)


def test_actions_are_shown_as_a_shell_would_take_them() -> None:
    assert str(Run(("a", "b c", "$x"), Unless("exists", "/x"))) == "a 'b c' '$x'  # unless exists: /x"
    assert str(Write("/sys/x", "a b\n")) == "echo 'a b' > /sys/x"
    assert str(Write("/sys/x", "1")) == "echo -n 1 > /sys/x"
    assert str(Link("/a", "/b c")) == "ln -s /a '/b c'  # unless exists: /b c"
