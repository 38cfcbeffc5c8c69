"""Prints how the time of set-up and release grows with the number of namespaces. Emulated: only ratios mean anything.

Usage: make lab-bench
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab import private
from tests.lab.machines import Lab
from tests.lab.private import STORAGE

NAMESPACES = (2, 8, 32)
FABRICS = ("tcp", "roce")
DONE = re.compile(r"(\d+) of (\d+) actions were needed")


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder)) as lab:
        _say("namespaces  fabric  commands on the reader  connect to mount  release  release with one of two dead")
        for fabric in FABRICS:
            for count in NAMESPACES:
                _say(_measure(lab, fabric, count))
    return 0


def _measure(lab: Lab, fabric: str, count: int) -> str:
    lab.make_ready()
    lab.configure(private.configs(fabric, 0, each=count // 2, fast_fail_seconds=5))
    lab.document("configure-storage", *STORAGE)
    made: list[str] = []
    up = _seconds(lambda: made.append(lab.document("configure-compute", "c0")["c0"].output))
    commands = DONE.search(made[0])
    down = _seconds(lambda: lab.document("release-node", "c0"))
    lab.document("configure-compute", "c0")
    lab.machine("s1").power_off()
    down_dead = _seconds(lambda: lab.document("release-node", "c0"))
    lab.clean_up()
    number = commands[1] if commands else "?"
    return f"{count:10d}  {fabric:6s}  {number:>22s}  {up:14.1f} s  {down:5.1f} s  {down_dead:27.1f} s"


def _seconds(do: Callable[[], object]) -> float:
    begin = time.monotonic()
    do()
    return time.monotonic() - begin


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
