"""Volumes whose files lie on both storage machines at once, filled over the fabric and then sealed under the filler."""

from __future__ import annotations

from tests.lab.layouts import STRIPED, configs
from tests.lab.machines import Lab
from tests.lab.test_smoke import CHECK, COMPUTE, REFUSED_BYTES, STORAGE, VOLUMES, WRITES, fill

CONNECTIONS = """
cd /sys/class/nvme-fabrics/ctl
for second in $(seq 70); do ls | grep -q nvme || break; sleep 1; done
ls | grep nvme || true
"""
"""The connections that are left when the kernel has had its time: with RDMA it gives a closed one up after a minute."""


def test_striped_volumes_are_filled_over_the_fabric_by_two_and_read_by_two(lab: Lab, fabric: str) -> None:
    lab.configure(configs(STRIPED, fabric))
    lab.document("preflight", *STORAGE, *COMPUTE)
    for _ in range(2):
        lab.document("configure-storage", *STORAGE)
    sums = fill(lab, *STORAGE)
    for _ in range(2):
        lab.document("seal-dataset", *STORAGE)
    # Whoever filled is not connected any more, and its way in is gone.
    assert set(lab.on(STORAGE, CONNECTIONS).values()) == {""}
    served = lab.run("s1", "ls /sys/kernel/config/nvmet/subsystems").split()
    assert served == ["nqn.2026-01.io.headrace:lab-1:sealed-1"]
    lab.document("configure-storage", *STORAGE)
    for _ in range(2):
        lab.document("configure-compute", *COMPUTE)
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
    for command in WRITES:
        assert lab.attempt("c1", command.format(volumes=VOLUMES, bytes=REFUSED_BYTES)).code, f"not refused: {command}"
    assert '"healthy": true' in lab.run("c1", "headrace-agent health")
    for nodes in (COMPUTE, COMPUTE, STORAGE, STORAGE):
        lab.document("release-node", *nodes)
    assert lab.left() == {}
