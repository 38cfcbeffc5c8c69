"""Writes node.json from what the machine knows of itself: its id, its tags, and two words of its user data.

It runs before the agent is installed, so it takes the standard library alone.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

METADATA = "http://169.254.169.254/latest"
NODE_FILE = "/var/lib/headrace/node.json"
TAGS = {
    "run_id": "headrace:run-id",
    "role": "headrace:role",
    "attempt": "headrace:attempt",
    "event_bus": "headrace:stack",
    "deadline_at": "headrace:deadline-at",
}
TRIES, PAUSE_SECONDS = 30, 2.0
"""Tags may show up in the metadata a little after the machine does."""


def ask(path: str, base: str) -> str:
    """Return what the metadata service says of the path. Raises OSError when it says nothing in a minute."""
    for left in reversed(range(TRIES)):
        try:
            return _get(f"{base}/meta-data/{path}", _token(base))
        except OSError:
            if not left:
                raise
            time.sleep(PAUSE_SECONDS)
    raise OSError(path)


def _token(base: str) -> str:
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    request = urllib.request.Request(f"{base}/api/token", method="PUT", headers=headers)  # noqa: S310 - a fixed address
    return _read(request)


def _get(url: str, token: str) -> str:
    return _read(urllib.request.Request(url, headers={"X-aws-ec2-metadata-token": token}))  # noqa: S310 - same


def _read(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - same
        return str(answer.read().decode())


def describe(base: str, run_bucket: str, role_id: str) -> dict[str, object]:
    """Return the content of node.json.

    `node_folder` is the `aws:userid` of this machine's keys, below which alone its role may read.
    """
    node_id = ask("instance-id", base)
    tags = {name: ask(f"tags/instance/{tag}", base) for name, tag in TAGS.items()}
    return {
        **tags,
        "attempt": int(tags["attempt"]),
        "node_id": node_id,
        "node_folder": f"{role_id}:{node_id}",
        "run_bucket": run_bucket,
        "process_node": False,
        "folder": str(Path(os.environ.get("HEADRACE_NODE_FILE", NODE_FILE)).parent),
    }


def main() -> None:
    """Write the file whole or not at all."""
    path = Path(os.environ.get("HEADRACE_NODE_FILE", NODE_FILE))
    base = os.environ.get("HEADRACE_METADATA", METADATA)
    described = describe(base, os.environ["HEADRACE_RUN_BUCKET"], os.environ["HEADRACE_NODE_ROLE_ID"])
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(described, indent=1) + "\n")
    unfinished.replace(path)


if __name__ == "__main__":
    main()
