"""What a compute machine wrote to a storage machine's disks is saved from there, though its writer only paused."""

from __future__ import annotations

import hashlib
import json

import pytest

from headrace.domain.nodeconfig import NodeConfig, SalvageConfig
from headrace.domain.salvage import left_on
from tests.lab.layouts import LENT, configs, plan_of
from tests.lab.loads import Load, troubles
from tests.lab.machines import BUCKET, PLACES, PREFIX, Lab, until
from tests.lab.test_smoke import STORAGE, VOLUMES, fill

SCRATCH = f"{VOLUMES}/scratch-000"
BOUNDS = {"fast_fail_seconds": 4, "keep_alive_seconds": 5}
REFUSED_SECONDS = 60
SAVE_SECONDS = 120
MAKE = f"""
set -e
grep -q " {SCRATCH} " /proc/mounts
mkdir -p {SCRATCH}/results/deep {SCRATCH}/results/w
head -c 20000000 /dev/urandom > {SCRATCH}/results/model.bin
head -c 100000 /dev/urandom > {SCRATCH}/results/deep/small.bin
sync -f {SCRATCH}
cd {SCRATCH}/results && sha256sum model.bin deep/small.bin
"""
WRITTEN = """
for one in /sys/block/dm-*; do
  read -r name < $one/dm/name; read -r _ _ _ _ writes _ sectors _ < $one/stat
  case $name in headrace-scratch-*) echo $name $writes $sectors ;; esac
done
"""


def salvage_config(made: NodeConfig, fabric: str) -> NodeConfig:
    """Return what the first storage machine is told when the first compute machine is gone."""
    storage, lost = PLACES["s0"].row(), PLACES["c0"].row()
    left = left_on(plan_of(LENT, fabric), storage, [lost], lambda _: (BUCKET, "saved/"))
    exports = tuple(one for one in made.exports if one.phase != "always")
    salvage = SalvageConfig(left=left, results_grace_seconds=SAVE_SECONDS)
    return made.model_copy(update={"salvage": salvage, "exports": exports})


@pytest.mark.loses_a_machine
@pytest.mark.parametrize("fabric", ["tcp"])
def test_what_a_paused_writer_left_is_saved_and_it_never_writes_again(lab: Lab, fabric: str) -> None:
    made = configs(LENT, fabric, **BOUNDS)
    lab.configure(made)
    lab.document("configure-storage", *STORAGE)
    fill(lab, "s0")
    lab.document("seal-dataset", *STORAGE)
    lab.document("configure-storage", "s0")
    lab.document("configure-compute", "c0")
    sums = lab.run("c0", MAKE)
    assert lab.attempt("c0", "cat /data/s0/big | head -c 1000000 | wc -c").output.strip() == "1000000"
    writer = Load(lab, "c0", "write", f"{SCRATCH}/results/w")
    until(60, "some writes", lambda: writer.count() > 5)
    lab.machine("c0").freeze()

    lab.configure({"s0": salvage_config(made["s0"], fabric)})
    lab.serve("s0")
    lab.document("salvage-results", "s0")
    seconds = until(SAVE_SECONDS, "the end of the salvage", lambda: outcome(lab))
    assert json.loads(outcome(lab))["detail_type"] == "Results Salvaged", outcome(lab)
    assert json.loads(outcome(lab))["body"]["ranks"] == [0], outcome(lab)
    lab.note(f"what a paused writer left was saved after {seconds:.0f} s ({fabric}, emulated)")
    assert saved_sums(lab, "model.bin", "deep/small.bin") == sums.splitlines()
    manifest = json.loads(lab.stored(f"{PREFIX}results/c0/manifest.json"))
    assert (manifest["node_id"], manifest["skipped"]) == ("c0", [])
    assert manifest["files"] >= 2 + 5, "what it had written to the end of the file is there as well"

    written = lab.run("s0", WRITTEN)
    assert len(written.splitlines()) == len(LENT[1].member_node_indexes) * LENT[1].slices_per_member
    lab.machine("c0").thaw()
    until(REFUSED_SECONDS, "its refusal", lambda: troubles(writer.seen()))
    assert lab.run("s0", WRITTEN) == written
    assert "scratch" not in lab.run("s0", "ls /sys/kernel/config/nvmet/ports/1/subsystems; cat /proc/mounts")
    lab.document("salvage-results", "s0")
    lab.document("release-node", "c0")
    lab.document("release-node", *STORAGE)
    assert lab.left() == {}


def outcome(lab: Lab) -> str:
    """Return how the salvage ended, once it has."""
    return lab.attempt("s0", "cat /var/lib/headrace/spool/salvage-*.outcome").output


def saved_sums(lab: Lab, *paths: str) -> list[str]:
    return [f"{hashlib.sha256(lab.stored(f'saved/{path}')).hexdigest()}  {path}" for path in paths]
