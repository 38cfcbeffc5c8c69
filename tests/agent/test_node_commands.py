"""How a node's many data set volumes become one folder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.actions import Run
from headrace_agent.node_commands import compute_actions, grouped
from tests.agent.fabric_configs import DATA, VOLUMES, compute, machine, of, uuid_of


@given(st.lists(st.integers(1, 60), min_size=1, max_size=400))
def test_folders_are_grouped_in_order_so_that_each_mount_takes_its_names(lengths: list[int]) -> None:
    folders = ["x" * length for length in lengths]
    groups = grouped(folders)
    assert [folder for group in groups for folder in group] == folders
    assert max(len(":".join(group)) for group in groups) <= 3000


def test_more_volumes_than_one_mount_takes_are_merged_in_groups() -> None:
    many = [
        of("v0", [uuid_of("v0", 0)], hydrated_here=False) | {"volume_id": f"dataset-{number:03d}"}
        for number in range(200)
    ]
    actions = compute_actions(compute(volumes=many), machine(0), VOLUMES, DATA)
    mounts = [one.argv for one in actions if isinstance(one, Run) and one.argv[:3] == ("mount", "-t", "overlay")]
    assert len(mounts) > 2
    assert max(len(argv[-2]) for argv in mounts) < 4096
    assert mounts[-1][-2].count(":") == len(mounts) - 2
