"""Volumes of one machine alone: nobody else connects, and with a second copy a lost storage machine loses nothing."""

from __future__ import annotations

import pytest

from headrace.domain.fabric_names import host_nqn
from tests.lab import private
from tests.lab.loads import Load, longest_seconds, troubles
from tests.lab.machines import PLACES, Lab, until
from tests.lab.private import STORAGE

SCRATCH = "/var/lib/headrace/volumes/scratch-000"
KEEP_ALIVE_SECONDS, FAST_FAIL_SECONDS = 5, 5
STALL_SECONDS = 2 * KEEP_ALIVE_SECONDS + 4 + FAST_FAIL_SECONDS
"""Noticed after two keep-alive periods, retried for the fast-fail time, and some seconds for the kernel's own steps."""

SLACK_SECONDS = 15
"""For an emulated machine whose host is busy."""


def test_two_machines_have_a_private_volume_each_and_neither_reaches_the_others(lab: Lab, fabric: str) -> None:
    lab.configure(private.configs(fabric, 0))
    for _ in range(2):
        lab.document("configure-storage", *STORAGE)
    for _ in range(2):
        lab.document("configure-compute", "c0", "c1")
    for name in ("c0", "c1"):
        lab.run(name, f"grep -q ' {SCRATCH} ' /proc/mounts && echo {name} > {SCRATCH}/who && sync")
    transport = "rdma" if fabric == "roce" else "tcp"
    own = host_nqn(PLACES["c1"].row())
    refused = lab.attempt(
        "c1",
        f"timeout 60 nvme connect --transport={transport} --traddr={PLACES['s0'].row().address} --trsvcid=4420 "
        f"--nqn={private.nqn('c0', 's0')} --hostnqn={own} --hostid={own.rsplit(':', 1)[1]}",
    )
    assert refused.code, "another machine's private volume was connected to"
    assert [lab.run(name, f"cat {SCRATCH}/who").strip() for name in ("c0", "c1")] == ["c0", "c1"]
    lab.document("release-node", "c0", "c1")
    lab.document("release-node", *STORAGE)
    assert lab.left() == {}


@pytest.mark.loses_a_machine
def test_a_mirrored_volume_outlives_a_storage_machine_and_is_healed_onto_blank_disks(lab: Lab, fabric: str) -> None:
    made = private.configs(fabric, 10, fast_fail_seconds=FAST_FAIL_SECONDS, keep_alive_seconds=KEEP_ALIVE_SECONDS)
    lab.configure(made)
    lab.document("configure-storage", *STORAGE)
    lab.document("configure-compute", "c0")
    lab.run("c0", f"head -c 20000000 /dev/urandom > {SCRATCH}/kept; sync; sha256sum {SCRATCH}/kept > /tmp/sum")
    writer = Load(lab, "c0", "write", SCRATCH)
    until(60, "some writes", lambda: writer.count() > 5)
    lab.machine("s1").power_off()
    before = writer.count()
    until(STALL_SECONDS + SLACK_SECONDS + 30, "writes after the loss", lambda: writer.count() > before + 10)
    assert '"healthy": false' in lab.attempt("c0", "headrace-agent health").output
    lab.boot("s1")
    lab.document("configure-storage", "s1")
    until(90, "the connection to live again", lambda: "live" in lab.run("c0", connection_state()))
    lab.document("configure-compute", "c0")
    until(120, "the array to be whole", lambda: lab.run("c0", "cat /sys/block/md*/md/degraded").split() == ["0"])
    assert '"healthy": true' in lab.run("c0", "headrace-agent health")
    seen = writer.stop()
    assert troubles(seen) == []
    assert longest_seconds(seen) < STALL_SECONDS + SLACK_SECONDS
    lab.run("c0", "echo 3 > /proc/sys/vm/drop_caches; sha256sum -c /tmp/sum")
    lab.document("release-node", "c0")
    lab.document("release-node", *STORAGE)
    assert lab.left() == {}


def connection_state() -> str:
    return "grep -l s1 /sys/class/nvme-fabrics/ctl/nvme*/subsysnqn | while read f; do cat ${f%/*}/state; done"
