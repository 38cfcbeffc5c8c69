"""The undo of everything: from what is there, whatever it is, to a machine that serves, mounts and knows nothing."""

from __future__ import annotations

from collections.abc import Iterable

from headrace_agent.actions import Action, Await, Run, Together, Unless, Write
from headrace_agent.connect_commands import DISCONNECT_SECONDS
from headrace_agent.export_commands import NVMET, remove_subsystem
from headrace_agent.leftovers import Connection, Leftovers

UNMOUNT_SECONDS = 30
UNMOUNT_TRIES = 6
CONNECT_AGAIN_SECONDS = 140
"""With the time that the end of a connection has, longer than an attempt to connect again over RDMA lasts (16 times
4.3 s and twice the life of a packet, Linux drivers/infiniband/core/cma.c), and than the end of a connection whose
target died a moment ago (`make lab-bench` prints it). To remove the device or its module from under either hangs for
good, since nothing ends it then."""

MODULES = ("nvme-rdma", "nvme-tcp", "nvmet-rdma", "nvmet-tcp", "nvmet", "rdma_rxe", "dm-flakey")


def release_actions(found: Leftovers) -> list[Action]:
    """Return what undoes all that was found, readers first, then what they read through, then what is served.

    A connection that does not live is told to give up, since otherwise whatever waits for it would wait on.
    """
    actions: list[Action] = [
        Write(f"/sys/class/nvme-fabrics/ctl/{one.name}/ctrl_loss_tmo", "0", may_fail=True)
        for one in found.connections
        if one.state != "live"
    ]
    actions += [
        Run(("umount", one), Unless("unmounted", one), tries=UNMOUNT_TRIES, may_fail=True, seconds=UNMOUNT_SECONDS)
        for one in found.mounts
    ]
    actions += [
        Run(("mdadm", "--stop", one), Unless("stopped", one), may_fail=True, seconds=UNMOUNT_SECONDS)
        for one in found.arrays
    ]
    actions += [Together(tuple(_end(one) for one in found.connections))] if found.connections else []
    return [*actions, *_unserve(found), *_unload(found)]


def _end(one: Connection) -> Run:
    """Return the command for one connection: a subsystem's are ended in turn, and a dead one would hold the rest up."""
    gone = Unless("absent", f"/sys/class/nvme-fabrics/ctl/{one.name}")
    return Run(("nvme", "disconnect", f"--device={one.name}"), gone, may_fail=True, seconds=DISCONNECT_SECONDS)


def _unserve(found: Leftovers) -> Iterable[Action]:
    for one in found.served:
        yield from remove_subsystem(one.nqn, one.hosts, one.namespace_ids)
    for host in found.hosts:
        folder = f"{NVMET}/hosts/{host}"
        yield Run(("rmdir", folder), Unless("absent", folder), may_fail=True)
    for port in found.ports:
        folder = f"{NVMET}/ports/{port}"
        yield Run(("rmdir", folder), Unless("absent", folder), may_fail=True)


def _unload(found: Leftovers) -> Iterable[Action]:
    for name in found.mapped:
        yield Run(("dmsetup", "remove", "--retry", name), may_fail=True)
    if found.mapped:
        yield Run(("dmsetup", "mknodes"), may_fail=True)
    for link in found.soft_roce:
        yield Await(Unless("idle", "rdma"), CONNECT_AGAIN_SECONDS, may_fail=True)
        yield Run(("rdma", "link", "del", link), Unless("busy", "rdma"), may_fail=True)
    for module in MODULES:
        yield Run(("modprobe", "-r", "-q", module), Unless("busy", "rdma"), may_fail=True)
