"""The shortest whole way: filled, sealed, read on two machines at once, written by nobody, undone."""

from __future__ import annotations

from tests.lab.layouts import SPREAD, configs
from tests.lab.machines import Lab

STORAGE, COMPUTE = ("s0", "s1"), ("c0", "c1")
VOLUMES = "/var/lib/headrace/volumes"
FILL = """
set -e
for volume in {volumes}/dataset-*; do
  grep -q " $volume " /proc/mounts
  mkdir -p $volume/$(uname -n)
  head -c 3000000 /dev/urandom > $volume/$(uname -n)/big
  for i in 1 2 3 4 5 6 7 8; do head -c $((i * 7777)) /dev/urandom > $volume/$(uname -n)/small-$i; done
  (cd $volume && sha256sum $(uname -n)/*)
done
"""
CHECK = "set -o pipefail; cd /data && find . -mindepth 2 -type f -exec sha256sum {} + | sed 's|  ./|  |' | sort -k2"
"""A folder that cannot be read is an error here; to a pattern of the shell it would look empty."""

REFUSED_BYTES = 1 << 20
"""Of a whole device's zeros each block is refused for itself: minutes, in which nothing else gets through."""

WRITES = (
    "touch /data/x",
    "touch {volumes}/dataset-000/x",
    "mount -o remount,rw {volumes}/dataset-000",
    "for md in /dev/md/*; do dd if=/dev/zero of=$md bs=4096 count=1 oflag=direct && exit 0; done; exit 1",
    *(
        "tried=; for d in /dev/nvme*n*; do [ -b $d ] || continue; tried=1; blockdev --setrw $d; "
        f"{command} && exit 0; done; [ $tried ] && exit 1; exit 0"
        for command in (
            "dd if=/dev/zero of=$d bs=4096 count=1 seek=100 oflag=direct",
            "blkdiscard -f -l {bytes} $d",
            "blkdiscard -z -f -l {bytes} $d",
        )
    ),
)


def fill(lab: Lab, *storage: str) -> list[str]:
    """Fill what is mounted on storage nodes. Return lines of checksums, sorted by path."""
    said = lab.on(storage, FILL.format(volumes=VOLUMES))
    return sorted((line for text in said.values() for line in text.splitlines()), key=lambda line: line.split()[1])


def test_a_data_set_is_filled_sealed_read_by_two_and_written_by_nobody(lab: Lab, fabric: str) -> None:
    lab.configure(configs(SPREAD, fabric))
    lab.document("configure-storage", *STORAGE)
    sums = fill(lab, *STORAGE)
    assert lab.attempt("c0", connect("s0", lab, fabric)).code, "a reader was admitted before the data set was sealed"
    lab.document("seal-dataset", *STORAGE)
    assert lab.attempt("c0", connect("s0", lab, fabric)).code, "a host that is not on the list was admitted"
    assert "not allowed" in lab.run("s0", "dmesg | tail -20")
    lab.document("configure-compute", *COMPUTE)
    lab.on(COMPUTE, "echo 3 > /proc/sys/vm/drop_caches")
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
    for command in WRITES:
        assert lab.attempt("c0", command.format(volumes=VOLUMES, bytes=REFUSED_BYTES)).code, f"not refused: {command}"
    lab.on(COMPUTE, "echo 3 > /proc/sys/vm/drop_caches")
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
    lab.document("release-node", *COMPUTE)
    lab.document("release-node", *STORAGE)
    assert lab.left() == {}


def connect(server: str, lab: Lab, fabric: str, host: str = "99999999-1111-5111-8111-111111111111") -> str:
    """Return a script that connects to a storage node as some host."""
    number, transport = server[1], "rdma" if fabric == "roce" else "tcp"
    address = lab.machine(server).guest.address
    rdma = "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0 2>/dev/null;" if fabric == "roce" else ""
    return (
        f"{rdma} modprobe nvme-{transport}; timeout 60 nvme connect --transport={transport} --traddr={address} "
        f"--trsvcid=4420 --nqn=nqn.2026-01.io.headrace:lab-1:sealed-{number} --hostid={host} "
        f"--hostnqn=nqn.2014-08.org.nvmexpress:uuid:{host}"
    )
