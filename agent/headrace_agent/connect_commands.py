"""The commands that connect this machine to the subsystems of others, and end that again."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_agent.actions import Action, Await, Run, Together, Unless, Write
from headrace_agent.config import Copy, Import, NodeConfig
from headrace_agent.fields import ConfigError
from headrace_agent.machine import SOFT_ROCE, Machine
from headrace_agent.names import address, host_uuid, subsystem_nqn

TRANSPORTS = {"tcp": "tcp", "roce": "rdma"}
CONNECT_TRIES = 240
"""Tries at least half a second apart: another storage node of the run may still be on its way to export."""

SPARE_CONNECT_SECONDS = 20
"""For one of several paths to the same bytes: longer than a target that is there ever takes, also emulated."""

CONNECT_SECONDS = 60
"""A connection refused for a wrong key can hang in the kernel for good over RDMA (measured)."""

TO_THE_KERNEL: tuple[str, ...] = (
    "dd",
    "of=/dev/nvme-fabrics",
    "bs=4096",
    "count=1",
    "iflag=fullblock",
    "conv=notrunc",
    "status=none",
)
DISCONNECT_SECONDS = 20
"""With a dead target the kernel waits about a minute (measured); it goes on by itself when nobody waits."""

PORT_SECONDS = 30
COPY_QUEUES = 4
"""A copy has several reads under way at once; each queue is one connection."""


def transport_of(config: NodeConfig) -> str:
    """Return the kernel's name for the fabric; raises ConfigError where exports or imports have none."""
    if config.fabric not in TRANSPORTS:
        raise ConfigError(f"config.json: exports and imports need the fabric tcp or roce, found {config.fabric!r}")
    return TRANSPORTS[config.fabric]


def rdma_link(config: NodeConfig, machine: Machine) -> list[Action]:
    """Return what gives the network device soft-RoCE, where RoCE is asked for and no RDMA device does it itself."""
    if config.fabric != "roce" or machine.rdma_device:
        return []
    link = ("rdma", "link", "add", SOFT_ROCE, "type", "rxe", "netdev", machine.network_device)
    device = f"/sys/class/infiniband/{SOFT_ROCE}"
    return [
        Run(("modprobe", "rdma_rxe")),
        Run(link, Unless("exists", device)),
        Await(Unless("reads", f"{device}/ports/1/state=4: ACTIVE"), PORT_SECONDS),
    ]


def connect_all(config: NodeConfig, imports: Sequence[Import], machine: Machine) -> list[Action]:
    """Return what connects to all subsystems at once and says when what waits for a dead one fails.

    nvme-cli 2.3 has no option for the latter, and the kernel asks for it anew for each controller. Of several paths to
    the same bytes one is enough to begin with: the machine at the end of another may be lost already.
    """
    if not imports:
        return []
    transport = transport_of(config)
    spares = several_paths(imports)
    return [
        Run(("modprobe", "-a", "nvme-fabrics", f"nvme-{transport}")),
        Write("/sys/module/nvme_core/parameters/iopolicy", "round-robin", may_fail=True),
        Together(tuple(_connect(config, one, transport, machine, spare=one in spares) for one in imports)),
        *(_fast_fail(nqn, seconds) for nqn, seconds in dict.fromkeys(_tuned(imports))),
    ]


def several_paths(imports: Sequence[Import]) -> list[Import]:
    """Return the imports of subsystems that are reached at more than one address."""
    nqns = [one.subsystem_nqn for one in imports]
    return [one for one in imports if nqns.count(one.subsystem_nqn) > 1]


def connect_copy(config: NodeConfig, one: Copy, tries: int, machine: Machine) -> list[Action]:
    """Return what connects to the node whose slice is to be copied; it admits this one when its slice is sealed.

    Over TCP each piece of data comes with a sum of 32 bits (NVMe/TCP transport specification, DDGST), as over RDMA.
    """
    transport = transport_of(config)
    source = Import("", one.address, one.service_port, one.subsystem_nqn, (), COPY_QUEUES, 5, 2, 30, 600, None)
    return [
        Run(("modprobe", "-a", "nvme-fabrics", f"nvme-{transport}")),
        _connect(config, source, transport, machine, tries, digest=transport == "tcp"),
    ]


def disconnect(nqn: str) -> Action:
    """Return the command that ends all connections to a subsystem."""
    argv = ("nvme", "disconnect", f"--nqn={subsystem_nqn(nqn)}")
    return Run(argv, Unless("disconnected", nqn), may_fail=True, seconds=DISCONNECT_SECONDS)


def _connect(
    config: NodeConfig,
    one: Import,
    transport: str,
    machine: Machine,
    tries: int = CONNECT_TRIES,
    *,
    spare: bool = False,
    digest: bool = False,
) -> Run:
    """Return the command for one connection; long options, since short ones changed their meaning.

    With a key the kernel is asked directly, as nvme-cli does: on a command line every user of the machine would see it.
    """
    nqn, target = subsystem_nqn(one.subsystem_nqn), address(one.address)
    if one.address in machine.keyed:
        secret = f"dhchap_secret=key({target})"
        argv, given = TO_THE_KERNEL, ",".join((_options(config, one, transport), *(["data_digest"] * digest), secret))
    else:
        argv, given = (*_nvme_connect(config, one, transport), *(["--data-digest"] * digest)), ""
    there = Unless("connected", f"{nqn}@{target}")
    if spare:
        enough = Unless("reachable", nqn)
        return Run(argv, there, tries=tries, seconds=SPARE_CONNECT_SECONDS, spare=enough, given=given)
    return Run(argv, there, tries=tries, seconds=CONNECT_SECONDS, given=given)


def _nvme_connect(config: NodeConfig, one: Import, transport: str) -> tuple[str, ...]:
    return (
        *("nvme", "connect", f"--transport={transport}", f"--traddr={one.address}", f"--trsvcid={one.service_port}"),
        *(f"--nqn={one.subsystem_nqn}", f"--hostnqn={config.host_nqn}", f"--hostid={host_uuid(config.host_nqn)}"),
        *(f"--nr-io-queues={one.queues}", f"--ctrl-loss-tmo={one.loss_seconds}"),
        *(f"--reconnect-delay={one.reconnect_seconds}", f"--keep-alive-tmo={one.keep_alive_seconds}"),
    )


def _options(config: NodeConfig, one: Import, transport: str) -> str:
    """Return the same in the kernel's words (Linux drivers/nvme/host/fabrics.c, opt_tokens)."""
    words = {
        "transport": transport,
        "traddr": one.address,
        "trsvcid": one.service_port,
        "nqn": one.subsystem_nqn,
        "hostnqn": config.host_nqn,
        "hostid": host_uuid(config.host_nqn),
        "nr_io_queues": one.queues,
        "ctrl_loss_tmo": one.loss_seconds,
        "reconnect_delay": one.reconnect_seconds,
        "keep_alive_tmo": one.keep_alive_seconds,
    }
    return ",".join(f"{name}={value}" for name, value in words.items())


def _tuned(imports: Sequence[Import]) -> list[tuple[str, int]]:
    return [(one.subsystem_nqn, one.fast_fail_seconds) for one in imports]


def _fast_fail(nqn: str, seconds: int) -> Action:
    return Write(f"/sys/class/nvme-fabrics/ctl/controllers({nqn})/fast_io_fail_tmo", str(seconds))
