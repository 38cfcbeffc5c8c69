"""Readers and writers that go on in a machine while something is done to another, and what they saw."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.machines import Lab

LOAD = """
import json, os, sys, time
kind, path, log = sys.argv[1:4]
begin, count = time.monotonic(), 0
if kind == "read":
    paths = [os.path.join(top, name) for top, _, names in os.walk(path) for name in sorted(names)]
with open(log, "w", buffering=1) as out:
    while not os.path.exists(log + ".stop"):
        start, trouble = time.monotonic(), ""
        try:
            if kind == "write":
                with open(os.path.join(path, f"w{count % 8}"), "wb") as stream:
                    stream.write(os.urandom(262144)); stream.flush(); os.fsync(stream.fileno())
            else:
                with open(paths[count % len(paths)], "rb") as stream:
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    while stream.read(1 << 20):
                        pass
        except OSError as error:
            trouble = error.strerror
        out.write(json.dumps({"at": start - begin, "took": time.monotonic() - start, "trouble": trouble}) + "\\n")
        count += 1
        time.sleep(0.2)
"""


class Load:
    """One reader or writer in a machine; it stops when told."""

    def __init__(self, lab: Lab, node: str, kind: str, path: str) -> None:
        self._lab, self._node = lab, node
        self._log = f"/tmp/{kind}.log"
        lab.run(node, f"cat > /tmp/load.py <<'END'\n{LOAD}\nEND\nrm -f {self._log}*")
        start = f"setsid python3 /tmp/load.py {kind} {path} {self._log} >/dev/null 2>/tmp/{kind}.err </dev/null &"
        lab.run(node, start)

    def count(self) -> int:
        """Return how many reads or writes have ended."""
        return int(self._lab.run(self._node, f"wc -l < {self._log} 2>/dev/null || echo 0"))

    def seen(self) -> list[dict[str, Any]]:
        """Return every read or write so far: when, how long it took, and what went wrong."""
        text = self._lab.run(self._node, f"cat {self._log}")
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def stop(self) -> list[dict[str, Any]]:
        """Stop, and return all that was seen."""
        self._lab.run(self._node, f"touch {self._log}.stop; sleep 1")
        return self.seen()


def troubles(seen: list[dict[str, Any]]) -> list[str]:
    return [one["trouble"] for one in seen if one["trouble"]]


def longest_seconds(seen: list[dict[str, Any]]) -> float:
    return max(float(one["took"]) for one in seen)
