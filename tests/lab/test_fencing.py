"""A writer that was replaced cannot write any more, however it was stopped and whenever it goes on."""

from __future__ import annotations

import time

from tests.lab import private
from tests.lab.loads import Load
from tests.lab.machines import DISKS, Lab, until
from tests.lab.private import STORAGE
from tests.lab.test_private import SCRATCH

PAUSE_SECONDS = 3
"""Shorter than the keep-alive time: the target has not noticed anything, and a live connection would just go on."""

WRITTEN = """
for one in /sys/block/dm-*; do
  read -r name < $one/dm/name; read -r _ _ _ _ writes _ sectors _ < $one/stat
  case $name in headrace-private-c0-*) echo $name $writes $sectors ;; esac
done
"""
"""How many writes have ever reached each slice (kernel Documentation/block/stat): one more is one too many."""


def test_a_paused_writer_cannot_write_after_its_replacement(lab: Lab, fabric: str) -> None:
    lab.configure(private.configs(fabric, 0))
    lab.document("configure-storage", *STORAGE)
    lab.document("configure-compute", "c0")
    writer = Load(lab, "c0", "write", SCRATCH)
    until(60, "some writes", lambda: writer.count() > 5)
    lab.machine("c0").freeze()
    time.sleep(PAUSE_SECONDS)
    lab.configure({name: one for name, one in private.configs(fabric, 0, {"c0": "c1"}).items() if name in STORAGE})
    lab.document("configure-storage", *STORAGE)
    fenced = lab.on(STORAGE, WRITTEN)
    assert [len(text.splitlines()) for text in fenced.values()] == [DISKS] * len(STORAGE)
    lab.run("s0", "dmesg -C")
    lab.machine("c0").thaw()
    until(60, "its refusal", lambda: "not allowed" in lab.run("s0", "dmesg"))
    time.sleep(5)
    assert lab.on(STORAGE, WRITTEN) == fenced
    # Its way in stays open for the successor.
    assert lab.run("s0", "ls /sys/kernel/config/nvmet/ports/1/subsystems").split() == [
        private.nqn("c0", "s0"),
        private.nqn("c1", "s0"),
    ]
