"""A sealed volume with a second copy: two paths to the same namespaces, and the loss of one is only a pause."""

from __future__ import annotations

import pytest

from headrace_agent.path_watch import STALL_SECONDS
from tests.lab.layouts import MIRRORED, configs
from tests.lab.loads import Load, longest_seconds, troubles
from tests.lab.machines import Lab, until
from tests.lab.test_smoke import CHECK, COMPUTE, STORAGE, fill

KEEP_ALIVE_SECONDS = 5
KERNELS_OWN_SECONDS = 2 * KEEP_ALIVE_SECONDS + 4
"""What the kernel takes to leave a dead path when nobody tells it to."""

SLACK_SECONDS = 15
"""For emulated machines whose host is busy."""

WATCHED, ALONE = "c0", "c1"
"""The reader whose agent serves and watches its paths, and the one where nobody does."""


@pytest.mark.loses_a_machine
def test_a_reader_of_a_mirrored_volume_goes_on_when_a_storage_machine_is_lost(lab: Lab, fabric: str) -> None:
    lab.configure(configs(MIRRORED, fabric))
    lab.document("configure-storage", *STORAGE)
    sums = fill(lab, "s0")
    for _ in range(2):
        lab.document("seal-dataset", *STORAGE)
    lab.document("configure-compute", *COMPUTE)
    paths = lab.run("c0", "cat /sys/class/nvme-subsystem/nvme-subsys*/nvme*/state; ls /sys/class/nvme-fabrics/ctl")
    assert paths.split().count("live") == 2
    assert set(lab.run("c0", "cat /sys/class/nvme-subsystem/nvme-subsys*/iopolicy").split()) == {"round-robin"}
    check(lab, sums, *COMPUTE)
    lab.serve(WATCHED)
    readers = {node: Load(lab, node, "read", "/data") for node in COMPUTE}
    until(60, "some reads", lambda: all(one.count() > 5 for one in readers.values()))
    lab.machine("s0").power_off()
    before = {node: one.count() for node, one in readers.items()}
    until(
        KERNELS_OWN_SECONDS + SLACK_SECONDS + 30,
        "reads after the loss",
        lambda: all(one.count() > before[node] + 10 for node, one in readers.items()),
    )
    bounds = {WATCHED: STALL_SECONDS + KERNELS_OWN_SECONDS / 2, ALONE: KERNELS_OWN_SECONDS}
    for node, one in readers.items():
        seen = one.stop()
        lab.note(f"sealed mirror over {fabric}, {node}: longest read {longest_seconds(seen):.1f} s")
        assert troubles(seen) == []
        assert longest_seconds(seen) < bounds[node] + SLACK_SECONDS
    assert "resetting" in lab.run(WATCHED, "cat /var/log/headrace-agent.log")
    check(lab, sums, *COMPUTE)

    # Who comes now finds one of two paths only, mounts all the same, and says what is missing.
    lab.document("release-node", ALONE)
    said = lab.document("configure-compute", ALONE)[ALONE].output
    assert "nvme connect" in said
    check(lab, sums, ALONE)
    health = lab.attempt(ALONE, "headrace-agent health")
    assert health.code == 1
    assert health.output.count("not connected to") == 1
    assert "fails reads" not in health.output


def check(lab: Lab, sums: list[str], *nodes: str) -> None:
    """Read every byte from the machines that hold it, and compare."""
    lab.on(nodes, "echo 3 > /proc/sys/vm/drop_caches")
    assert {node: text.splitlines() for node, text in lab.on(nodes, CHECK).items()} == dict.fromkeys(nodes, sums)
