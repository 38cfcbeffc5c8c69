"""Measures the copy from S3 against other tools, interleaved in one run: `python -m bench.staging --rounds 3`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.copies import command
from bench.objects import MIB, DataSet, upload
from bench.weed import BUCKET, environment, weed

CHECKOUT = Path(__file__).parents[1]
OTHERS = ("s5cmd", "rclone", "obstore_loop", "boto3_threads")
TOOLS = ("ours", "ours_hashed", *OTHERS)
"""Over loopback, as over TLS, ours compares MD5s only when the job asks for it: `ours_hashed`."""

BOTO3_OBJECTS_MAX = 2_000
"""boto3 needs minutes for 20,000 small objects; it copies its own, fewer ones, and is compared per object."""

ROUND_TRIP_MS = 60
LINE_MB_PER_S = 400
"""Of a line that leaves this machine's processors idle, so that only its delay counts."""
ENDPOINT = "AWS_ENDPOINT_URL_S3"


class Copy(NamedTuple):
    """What one copy took; `cpu_seconds` are those of the tool's whole process, its start included."""

    seconds: float
    cpu_seconds: float


def measure(tool: str, endpoint: str, data_set: DataSet, scratch: Path) -> Copy:
    """Let a tool copy the data set into an empty folder. Raises RuntimeError when not every byte is there then."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    argv = command(tool, endpoint, BUCKET, data_set.prefix, scratch)
    began = time.monotonic()
    with (scratch.parent / f"{tool}.log").open("wb") as log:
        process = subprocess.Popen(argv, env=os.environ | {ENDPOINT: endpoint}, cwd=CHECKOUT, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    copy = Copy(time.monotonic() - began, used.ru_utime + used.ru_stime)
    sizes = [path.stat().st_size for path in scratch.rglob("*.bin")]
    if process.returncode or (len(sizes), sum(sizes)) != (data_set.objects, data_set.bytes):
        said = (scratch.parent / f"{tool}.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(
            f"{tool} ended with {process.returncode} and {len(sizes)} of {data_set.objects} files: {said}"
        )
    return copy


@contextmanager
def delayed(port: int, round_trip_ms: float, mb_per_s: float | None) -> Iterator[str]:
    """Run the delay proxy before the server; yield its address."""
    argv = [sys.executable, "-m", "bench.delay_proxy", str(port), "--round-trip-ms", str(round_trip_ms)]
    argv += ["--mb-per-s", str(mb_per_s)] if mb_per_s else []
    with subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout  # noqa: S101 - it was asked for
        try:
            yield f"http://127.0.0.1:{int(proxy.stdout.readline())}"
        finally:
            proxy.kill()


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def compare(endpoint: str, data_sets: Sequence[DataSet], rounds: int, scratch: Path) -> None:
    """Let every tool copy every data set, in turn, and print a table of each data set."""
    for data_set in data_sets:
        few = data_set._replace(name=f"{data_set.name}-few", objects=min(data_set.objects, BOTO3_OBJECTS_MAX))
        found: dict[str, list[Copy]] = defaultdict(list)
        for number in range(rounds):
            for tool in TOOLS:
                own = few if tool == "boto3_threads" and few.objects < data_set.objects else data_set
                if (own is few and number) or (tool == "ours_hashed" and data_set.in_parts):
                    continue
                copy = measure(tool, endpoint, own, scratch)
                scale = data_set.objects / own.objects
                found[tool].append(Copy(copy.seconds * scale, copy.cpu_seconds * scale))
        say(f"\n{title(data_set)}, {urlsplit(endpoint).scheme}, median of {rounds}")
        for line in table(data_set, found):
            say(line)


def title(data_set: DataSet) -> str:
    """Return what the data set is, in words."""
    size = f"{data_set.object_bytes // MIB} MiB" if data_set.object_bytes >= MIB else f"{data_set.object_bytes:,} bytes"
    kind = "uploaded in parts" if data_set.in_parts else "MD5 as ETag, which rclone and ours_hashed compare"
    return f"{data_set.objects:,} x {size} ({kind})"


def table(data_set: DataSet, found: Mapping[str, Sequence[Copy]]) -> Iterator[str]:
    """Yield a line per tool: rate and CPU seconds, and both of ours in relation to it."""
    rates = {tool: data_set.bytes / median(one.seconds for one in copies) / 1e6 for tool, copies in found.items()}
    cpu = {tool: median(one.cpu_seconds for one in copies) for tool, copies in found.items()}
    yield f"{'':<14}{'MB/s':>8}{'objects/s':>11}{'CPU s':>8}   ours: rate   CPU"
    for tool in found:
        ratios = f"{rates['ours'] / rates[tool]:>12.2f}{cpu['ours'] / cpu[tool]:>6.2f}"
        objects_per_s = rates[tool] * 1e6 / data_set.object_bytes
        yield f"{tool:<14}{rates[tool]:>8.0f}{objects_per_s:>11.0f}{cpu[tool]:>8.2f}   {ratios}"
    best_rate = max(rate for tool, rate in rates.items() if tool in OTHERS)
    least_cpu = min(seconds for tool, seconds in cpu.items() if tool in OTHERS)
    yield f"against the best: rate {rates['ours'] / best_rate:.2f}, CPU {cpu['ours'] / least_cpu:.2f}"


def far_away(
    port: int, data_sets: Sequence[DataSet], rounds: int, scratch: Path, mb_per_s: float | None = None
) -> None:
    """Copy through the proxy without and with delay, in turn, and print the relation of the rates.

    Without a rate of the line, the processors of this machine are the limit, which proxy and server share with ours.
    """
    line = f"a line of {mb_per_s:.0f} MB/s" if mb_per_s else "no limit but this machine"
    say(f"\nours through one proxy and {line}, {ROUND_TRIP_MS} ms round trip against none, median of {rounds}")
    with delayed(port, 0, mb_per_s) as near, delayed(port, ROUND_TRIP_MS, mb_per_s) as far:
        for data_set in data_sets:
            pairs = [
                (measure("ours", near, data_set, scratch).seconds, measure("ours", far, data_set, scratch).seconds)
                for _ in range(rounds)
            ]
            here, there = (data_set.bytes / median(one[side] for one in pairs) / 1e6 for side in (0, 1))
            say(f"{title(data_set)}: {here:.0f} MB/s without, {there:.0f} MB/s with: {there / here:.2f}")


def main() -> None:
    """Upload, compare, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.staging", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", type=int, default=20_000, help="objects of 100 KiB")
    parser.add_argument("--middle", type=int, default=200, help="objects of 8 MiB")
    parser.add_argument("--large-mib", type=int, default=1024, help="size of the one large object")
    parser.add_argument("--only", choices=("compare", "tls", "delay"), help="one part of the bench")
    parser.add_argument("--keep", type=Path, help="folder of the server, kept for the next run")
    parser.add_argument("--into", type=Path, default=Path("/dev/shm"), help="where copies go; memory by default")  # noqa: S108
    given = parser.parse_args()
    # Gigabytes of memory would stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    small = DataSet("small", given.small, 100 * 1024, in_parts=False)
    middle = DataSet("middle", given.middle, 8 * MIB, in_parts=True)
    large = DataSet("large", 1, given.large_mib * MIB, in_parts=True)
    checked = DataSet("checked", given.middle, 8 * MIB, in_parts=False)
    few = DataSet("small-few", min(given.small, BOTO3_OBJECTS_MAX), 100 * 1024, in_parts=False)
    with (
        tempfile.TemporaryDirectory() as own,
        tempfile.TemporaryDirectory(dir=given.into) as scratch,
        weed((given.keep or Path(own)).resolve()) as served,
    ):
        os.environ.update(environment(served.endpoint, served.authority))
        for data_set in (small, middle, large, checked, few):
            upload(data_set)
        copies = Path(scratch) / "copy"
        if given.only in ("compare", None):
            compare(served.endpoint, (large, middle, checked, small), given.rounds, copies)
        if given.only in ("tls", None):
            compare(served.secure_endpoint, (large, middle, small), given.rounds, copies)
        if given.only in ("delay", None):
            far_away(served.port, (middle, small), given.rounds, copies)
            far_away(served.port, (middle,), given.rounds, copies, LINE_MB_PER_S)


if __name__ == "__main__":
    main()
