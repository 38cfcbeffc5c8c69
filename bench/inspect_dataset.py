"""Measures InspectDataset over a server that lists a million keys: `python -m bench.inspect_dataset`."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process, Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headrace.aws.objects import S3Objects
from headrace.handlers import inspect_dataset
from tests.simulated_runs import job, only_run, simulated_site

PAGE_KEYS = 1000
FIRST_SLICES = 10
ENTRY = (
    "<Contents><Key>set/class-{folder:04d}/image%2B{number:08d}.jpg</Key><LastModified>2026-11-30T06:00:00.000Z"
    "</LastModified><ETag>&quot;{number:032x}&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass>"
    "</Contents>"
)
PAGE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<Name>datasets</Name><Prefix>set/</Prefix><KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys>"
    "<EncodingType>url</EncodingType><IsTruncated>{truncated}</IsTruncated>{next_token}{contents}</ListBucketResult>"
)


def page(start: int, keys: int) -> bytes:
    """Return the page of a listing that begins at a key's number."""
    numbers = range(start, min(start + PAGE_KEYS, keys))
    contents = "".join(ENTRY.format(folder=one // 1000, number=one, size=100_000 + one % 50_000) for one in numbers)
    is_last = numbers.stop == keys
    token = "" if is_last else f"<NextContinuationToken>{numbers.stop}</NextContinuationToken>"
    truncated = "false" if is_last else "true"
    return PAGE.format(count=len(numbers), truncated=truncated, next_token=token, contents=contents).encode()


def serve(keys: int, ports: Queue[int]) -> None:
    """Answer listings of one bucket for ever; tell the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            body = page(int(asked.get("continuation-token", ["0"])[0]), keys)
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ports.put(server.server_address[1])
    server.serve_forever()


@contextmanager
def listing(keys: int) -> Iterator[str]:
    """Run the server in a process of its own; yield its address."""
    ports: Queue[int] = Queue()
    server = Process(target=serve, args=(keys, ports), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=20)}"
    finally:
        server.terminate()
        server.join()


def measure(keys: int) -> None:
    """Inspect a data set of that many keys, slice by slice, and print what it took."""
    with listing(keys) as url, simulated_site() as site:
        site.run(job())
        run_id = only_run(site).run_id
        site.cloud.runs.update(run_id, "run", "run", {"tombstone_at": None, "ended_at": None, "status": "RUNNING"}, {})
        s3 = S3Objects(region="us-east-1", endpoint_url=url, access_key_id="a", secret_access_key="b")  # noqa: S106
        site.objects.page = s3.page  # type: ignore[method-assign]
        stored_bytes = 0

        def put(bucket: str, key: str, body: bytes) -> None:  # noqa: ARG001 - the port's names
            nonlocal stored_bytes
            stored_bytes += len(body)

        site.objects.put = put  # type: ignore[method-assign]
        began, cpu_before, slices = time.monotonic(), time.process_time(), 0
        cursor: dict[str, Any] = {}
        most = {"after 10 slices": 0, "at the end": 0}
        while not cursor.get("is_done"):
            cursor = inspect_dataset.step({"run_id": run_id, "cursor": cursor}, site.cloud)["cursor"]
            slices += 1
            most["after 10 slices" if slices <= FIRST_SLICES else "at the end"] = _most_resident_bytes()
        took, cpu = time.monotonic() - began, time.process_time() - cpu_before
    words = ", ".join(f"{size / 1e6:.0f} MB {when}" for when, size in most.items() if size)
    say(f"{cursor['files']:,} keys in {slices} slices: {took:.1f} s, {cpu:.1f} CPU s of the handler's process")
    say(f"manifest written: {stored_bytes / 1e6:.0f} MB")
    say(f"most memory resident: {words}")


def _most_resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.inspect_dataset", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    measure(parser.parse_args().keys)


if __name__ == "__main__":
    main()
