"""Every process of a job is found and ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import os, subprocess, sys
from headrace_agent.process_tree import MARK_VARIABLE, ProcessTree, become_subreaper
become_subreaper()
stranger = subprocess.Popen(["sleep", "60"], env={MARK_VARIABLE: "mark-10"})
tree = ProcessTree("mark-1")
marked = subprocess.Popen(["sleep", "60"], env={MARK_VARIABLE: "mark-1"}, start_new_session=True)
orphan_code = (
    "import subprocess; quiet = subprocess.DEVNULL;"
    "print(subprocess.Popen(['sleep', '60'], env={}, start_new_session=True, stdout=quiet, stderr=quiet).pid)"
)
made = subprocess.run([sys.executable, "-c", orphan_code], capture_output=True, text=True)
orphan = int(made.stdout)
found = tree.process_ids()
assert {marked.pid, orphan} <= found, found
assert stranger.pid not in found and os.getpid() not in found
assert tree.end_all(20) == set()
assert tree.process_ids() == set()
assert not os.path.exists(f"/proc/{orphan}"), "the orphan was reaped"
assert stranger.poll() is None
stranger.kill(); stranger.wait()
print("ok")
"""

REAPS = """
import os, subprocess, sys
from headrace_agent.process_tree import ProcessTree, become_subreaper
become_subreaper()
tree = ProcessTree("m")
kept = subprocess.Popen(["sleep", "60"])
made = subprocess.run([sys.executable, "-c", "import subprocess; print(subprocess.Popen(['true']).pid)"],
                      capture_output=True, text=True)
orphan = int(made.stdout)
while os.path.exists(f"/proc/{orphan}"):
    tree.reap(keep=kept.pid)
kept.kill()
os.waitid(os.P_PID, kept.pid, os.WEXITED | os.WNOWAIT)
tree.reap(keep=kept.pid)
assert kept.wait() == -9, "its end was left for the one who waits for it"
print("ok")
"""


def test_marked_and_orphaned_processes_are_ended_and_strangers_are_not(tmp_path: Path) -> None:
    assert run(CODE, tmp_path) == "ok\n"


def test_dead_orphans_are_reaped_but_not_the_command_itself(tmp_path: Path) -> None:
    assert run(REAPS, tmp_path) == "ok\n"


def run(code: str, folder: Path) -> str:
    """Run the code in a process of its own, since it adopts orphans and counts its own children."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
