"""Four virtual machines on which the documents run: two with disks to serve, two that read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headrace.domain.host_keys import keys_of
from headrace.domain.model import Contract
from headrace.domain.nodeconfig import Identity, NodeConfig
from headrace.domain.plan import Role
from headrace.domain.run import NodeRow
from headrace.local.document_file import read_document
from headrace.local.packaged import packaged
from headrace.local.s3_endpoint import S3Endpoint
from headrace.local.settings import REGION, child_environment
from headrace.local.system import SystemEntropy
from headrace.local.vm.agent_layer import AGENT_REQUIREMENTS, agent_layer
from headrace.local.vm.guest_agent import Done
from headrace.local.vm.image import build_image
from headrace.local.vm.machine import VirtualMachine, start_hub
from headrace.local.vm.qemu import HOST_ADDRESS, Guest, address_of, blank_disks, join_layers
from headrace.local.vm.supervise import START

if TYPE_CHECKING:
    from headrace.aws.objects import S3Objects

CHECKOUT = Path(__file__).parents[2]
IMAGES = CHECKOUT / "build" / "vm"
RUN_ID, BUCKET = "lab-1", "lab-runs"
PREFIX = f"runs/{RUN_ID}/"
ROLES: dict[str, Role] = {"s0": "storage", "s1": "storage", "c0": "compute", "c1": "compute"}
DISK_BYTES = 528 * 1024**2
"""mkfs.xfs wants room for a log of 64 MiB, which by its own rules needs 520 MiB, and some volumes are one disk."""
DISKS = 2
STOP = "[ ! -e /run/headrace-agent.pid ] || kill -KILL $(cat /run/headrace-agent.pid); rm -f /run/headrace-agent.pid"
DOCUMENT_SECONDS = 180.0
SCRIPT_SECONDS = 120.0
LOOK_SECONDS = 1.0
"""Each look starts programs in a machine whose processor is emulated, and takes time from what is looked at."""

LEFT = """
shopt -s nullglob
nvmet=/sys/kernel/config/nvmet
for one in $nvmet/{subsystems,ports,hosts}/* /sys/block/dm-* /sys/class/nvme-fabrics/ctl/nvme* \
  /sys/class/infiniband/* /dev/mapper/headrace*; do echo $one; done
for array in /sys/block/md*/md/array_state; do
  read -r state < $array; case $state in clear|inactive) ;; *) echo $array $state;; esac
done
while read -r _ folder _; do case $folder in /data|/var/lib/headrace*) echo $folder;; esac; done < /proc/mounts
"""
"""By the shell alone: each program that is started takes its time where a processor is emulated."""


@dataclass(frozen=True)
class Place:
    """Where a machine is in the lab."""

    name: str
    role: Role
    index: int
    port: int

    def row(self) -> NodeRow:
        """Return the machine as the run table has it."""
        return NodeRow(
            run_id=RUN_ID,
            node_id=self.name,
            role=self.role,
            attempt=1,
            index=self.index,
            instance_type="vm",
            zone="lab",
            address=address_of(self.port),
            usd_per_hour=0.0,
            launched_at="2026-01-01T00:00:00.000Z",
        )


OWN_KEYS = {name: SystemEntropy().token_hex(32) for name in ROLES}
PLACES = {name: Place(name, role, int(name[1]), port) for port, (name, role) in enumerate(ROLES.items())}


class Lab:
    """The machines, a hub between them, and an S3 endpoint with their configurations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._machines: dict[str, VirtualMachine] = {}
        environment = child_environment(os.environ)
        self._s3 = S3Endpoint(folder / "s3", SystemEntropy(), environment)
        self._environment = environment
        self._bucket = folder / "bucket"
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        self._bucket.mkdir(parents=True)
        image = build_image(IMAGES, print)
        layer = agent_layer(image, CHECKOUT / "agent/headrace_agent", AGENT_REQUIREMENTS, self._folder)
        self._initial = join_layers((*image.layers, layer), self._folder / "initial")
        self._image = image
        self._s3.serve(BUCKET, self._bucket, writable=True)
        self._s3.start()
        self._hub = start_hub(self._folder / "hub", self._environment)
        self.boot(*ROLES)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for machine in self._machines.values():
            machine.power_off()
        self._hub.kill()
        self._hub.wait()
        self._s3.stop()

    def boot(self, *names: str, keeps_disks: bool = False) -> None:
        """Power machines on, with blank disks unless told otherwise, and wait until they answer."""
        for name in names:
            self._machines[name] = machine = VirtualMachine(self._guest(name, keeps_disks), self._environment)
            machine.power_on()
        self.on(names, "mkdir -p /var/lib/headrace")
        for name in names:
            self.run(name, f"cat > /var/lib/headrace/node.json <<'END'\n{json.dumps(self._node_file(name))}\nEND\n")

    def machine(self, name: str) -> VirtualMachine:
        """Return a machine, to be frozen or switched off."""
        return self._machines[name]

    def configure(self, configs: Mapping[str, NodeConfig]) -> None:
        """Write the configurations where their nodes find them."""
        storage = [PLACES[name].row() for name, role in ROLES.items() if role == "storage"]
        for name, config in configs.items():
            self.give(name, config.model_dump(mode="json"))
            self._give(name, "identity.json", Identity(run_id=RUN_ID, node_id=name, attempt=1, hmac_key=OWN_KEYS[name]))
            self._give(name, "fabric.json", keys_of(config, storage, lambda row: OWN_KEYS[row.node_id]))

    def give(self, name: str, config: Mapping[str, Any]) -> None:
        """Write one configuration, through the endpoint's folder, before the endpoint has read it."""
        self._put(f"{PREFIX}nodes/{name}/config.json", json.dumps(config).encode())

    def _give(self, name: str, file: str, what: Contract) -> None:
        self._put(f"{PREFIX}nodes/{name}/{file}", what.model_dump_json().encode())

    def serve(self, node: str) -> None:
        """Start the agent's daemon on a configured node; nobody takes its events. It ends with the scenario."""
        self.run(node, "mkdir -p /var/log; " + START)
        until(60, "the daemon's first word", lambda: "Node Ready" in self.run(node, "cat /var/log/headrace-agent.log"))

    def note(self, text: str) -> None:
        """Print a figure of this machine's, for people only."""
        self.notes.append(text)

    def document(self, name: str, *nodes: str) -> dict[str, Done]:
        """Run a document on nodes at once; all must succeed."""
        done = self.try_document(name, *nodes)
        failed = {node: f"{one.output[-1500:]}{one.errors}" for node, one in done.items() if one.code}
        assert not failed, f"document {name} failed: {failed}"
        return done

    def try_document(self, name: str, *nodes: str) -> dict[str, Done]:
        """Run a document on nodes at once, and tell how it ended on each."""
        document = read_document(packaged("documents"), name)
        given = {"RunId": RUN_ID, "ConfigReference": f"s3://{BUCKET}/{PREFIX}"}
        return self._at_once(nodes, document.script, document.variables(given), DOCUMENT_SECONDS)

    def run(self, node: str, script: str, seconds: float = SCRIPT_SECONDS) -> str:
        """Run a script that must succeed. Return its output."""
        done = self.attempt(node, script, seconds)
        assert done.code == 0, f"{node}: exit code {done.code}: {done.output}{done.errors}"
        return done.output

    def attempt(self, node: str, script: str, seconds: float = SCRIPT_SECONDS) -> Done:
        """Run a script and tell how it ended."""
        return self._machines[node].run(script, self._variables(), seconds)

    def on(self, nodes: Iterable[str], script: str) -> dict[str, str]:
        """Run a script on nodes at once; all must succeed. Return their outputs."""
        done = self._at_once(tuple(nodes), script, {}, SCRIPT_SECONDS)
        failed = {node: one for node, one in done.items() if one.code}
        assert not failed, f"{script!r} failed: {failed}"
        return {node: one.output for node, one in done.items()}

    def left(self, *nodes: str) -> dict[str, list[str]]:
        """Return what the kernels of the nodes still know of the data path, by tools that are not the agent's."""
        said = self.on(nodes or ROLES, LEFT)
        return {node: text.split() for node, text in said.items() if text.split()}

    def make_ready(self) -> None:
        """Boot what is off, and give storage machines blank disks."""
        off = [name for name, machine in self._machines.items() if not machine.is_on()]
        self.boot(*off)
        wipe = "for disk in /dev/nvme?n1; do blkdiscard -f $disk; done"
        self.on([name for name, role in ROLES.items() if role == "storage"], wipe)

    def clean_up(self) -> None:
        """Undo a scenario; a machine that cannot is switched off, and its successor boots with the next scenario."""
        on = [name for name, machine in self._machines.items() if machine.is_on()]
        for name in on:
            self._machines[name].thaw()
        self.on(on, STOP)
        left = self.left(*on) if on else {}
        for role in ("compute", "storage"):
            ended = self.try_document("release-node", *(name for name in left if ROLES[name] == role))
            for name in (name for name, done in ended.items() if done.code or self.left(name)):
                self._machines[name].power_off()

    def _at_once(
        self, nodes: Sequence[str], script: str, variables: Mapping[str, str], seconds: float
    ) -> dict[str, Done]:
        given = {**self._variables(), **variables}
        if not nodes:
            return {}
        with ThreadPoolExecutor(len(nodes)) as threads:
            running = {node: threads.submit(self._machines[node].run, script, given, seconds) for node in nodes}
            return {node: one.result() for node, one in running.items()}

    def _variables(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self._s3.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self._s3.secret_access_key,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_S3": self._s3.url.replace("127.0.0.1", HOST_ADDRESS),
        }

    def stored(self, key: str) -> bytes:
        """Return an object that a machine has put into the bucket."""
        with closing(self._objects()) as objects:
            return objects.get(BUCKET, key)

    def _put(self, key: str, body: bytes) -> None:
        with closing(self._objects()) as objects:
            objects.put(BUCKET, key, body)

    def _objects(self) -> S3Objects:
        from headrace.aws.objects import S3Objects  # noqa: PLC0415 - boto3 takes a while to import

        return S3Objects(
            region=REGION,
            endpoint_url=self._s3.url,
            access_key_id=self._s3.access_key_id,
            secret_access_key=self._s3.secret_access_key,
        )

    def _guest(self, name: str, keeps_disks: bool) -> Guest:
        place, folder = PLACES[name], self._folder / name
        folder.mkdir(exist_ok=True)
        disks: tuple[Path, ...] = ()
        if place.role == "storage":
            disks = tuple(sorted(folder.glob("disk-*"))) if keeps_disks else blank_disks(folder, DISKS, DISK_BYTES)
        image = self._image
        return Guest(
            name, folder, self._folder / "hub", place.port, image.kernel, self._initial, disks, image.accelerator
        )

    def _node_file(self, name: str) -> dict[str, Any]:
        return {
            "run_id": RUN_ID,
            "node_id": name,
            "role": ROLES[name],
            "attempt": 1,
            "run_bucket": BUCKET,
            "event_bus": "headrace",
            "process_node": False,
            "deadline_at": "2100-01-01T00:00:00Z",
            "folder": "/var/lib/headrace",
        }


def until(seconds: float, what: str, condition: Any) -> float:
    """Wait until a condition holds and return the seconds it took; it is a fault when it does not in time."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"waited {seconds} s in vain for {what}"
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - begin
