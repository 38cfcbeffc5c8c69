"""A sealed volume with a second copy: two paths to the same namespaces, and the loss of one is only a pause."""

from __future__ import annotations

from tests.lab.layouts import MIRRORED, configs
from tests.lab.loads import Load, longest_seconds, troubles
from tests.lab.machines import Lab, until
from tests.lab.test_smoke import CHECK, COMPUTE, STORAGE, fill

KEEP_ALIVE_SECONDS = 5
STALL_SECONDS = 2 * KEEP_ALIVE_SECONDS + 4
SLACK_SECONDS = 15


def test_a_reader_of_a_mirrored_volume_goes_on_when_a_storage_machine_is_lost(lab: Lab, fabric: str) -> None:
    lab.configure(configs(MIRRORED, fabric))
    lab.document("configure-storage", *STORAGE)
    sums = fill(lab, *STORAGE)
    for _ in range(2):
        lab.document("seal-dataset", *STORAGE)
    lab.document("configure-storage", *STORAGE)
    for _ in range(2):
        lab.document("configure-compute", *COMPUTE)
    paths = lab.run("c0", "cat /sys/class/nvme-subsystem/nvme-subsys*/nvme*/state; ls /sys/class/nvme-fabrics/ctl")
    assert paths.split().count("live") >= 4
    assert set(lab.run("c0", "cat /sys/class/nvme-subsystem/nvme-subsys*/iopolicy").split()) == {"round-robin"}
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
    readers = [Load(lab, node, "read", "/data") for node in COMPUTE]
    until(60, "some reads", lambda: all(one.count() > 5 for one in readers))
    lab.machine("s0").power_off()
    before = [one.count() for one in readers]
    until(
        STALL_SECONDS + SLACK_SECONDS + 30,
        "reads after the loss",
        lambda: all(one.count() > count + 30 for one, count in zip(readers, before, strict=True)),
    )
    for one in readers:
        seen = one.stop()
        assert troubles(seen) == []
        assert longest_seconds(seen) < STALL_SECONDS + SLACK_SECONDS
    lab.on(COMPUTE, "echo 3 > /proc/sys/vm/drop_caches")
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
