"""Copies a prefix into a folder the way others do, each in a process of its own: `python -m bench.copies TOOL ...`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

STREAMS = 16


def obstore_loop(bucket: str, prefix: str, folder: Path) -> None:
    """Copy by a plain asyncio loop over obstore; large objects as a stream of pieces."""
    import asyncio  # noqa: PLC0415 - each tool pays for its own imports

    import obstore  # noqa: PLC0415

    from headrace_agent.s3 import open_bucket  # noqa: PLC0415

    store = open_bucket(bucket)
    keys = iter([one["path"] for batch in obstore.list(store, prefix) for one in batch])

    async def copy_some() -> None:
        for key in keys:
            answer = await obstore.get_async(store, key)
            with (folder / key.replace("/", "_")).open("wb") as file:
                async for piece in answer.stream(8 * 1024 * 1024):
                    file.write(piece)

    async def copy_all() -> None:
        await asyncio.gather(*(copy_some() for _ in range(STREAMS)))

    asyncio.run(copy_all())


def boto3_threads(bucket: str, prefix: str, folder: Path) -> None:
    """Copy by boto3's own transfer manager, several files at a time."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    import boto3  # noqa: PLC0415
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    s3 = boto3.client("s3", config=Config(max_pool_connections=2 * STREAMS))
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [one["Key"] for page in pages for one in page["Contents"]]
    transfer = TransferConfig(max_concurrency=STREAMS)

    def copy(key: str) -> None:
        s3.download_file(bucket, key, str(folder / key.replace("/", "_")), Config=transfer)

    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(copy, keys))


def ours(bucket: str, prefix: str, folder: Path) -> None:
    """List, write a manifest, and stage it as an agent does, with as many streams as on a machine."""
    from bench.our_copy import stage  # noqa: PLC0415

    stage(bucket, prefix, folder)


def ours_hashed(bucket: str, prefix: str, folder: Path) -> None:
    """Stage it as a job with `verify: checksum` asks for."""
    from bench.our_copy import stage  # noqa: PLC0415

    stage(bucket, prefix, folder, is_hashed=True)


TOOLS = {one.__name__: one for one in (obstore_loop, boto3_threads, ours, ours_hashed)}


def command(tool: str, endpoint: str, bucket: str, prefix: str, folder: Path) -> list[str]:
    """Return the command by which a tool copies the prefix, told to use many streams where it has to be told."""
    bin_folder = Path(sys.executable).parent
    if tool == "s5cmd":
        source = f"s3://{bucket}/{prefix}*"
        return [
            str(bin_folder / "s5cmd"),
            "--endpoint-url",
            endpoint,
            "cp",
            "--concurrency",
            "16",
            source,
            f"{folder}/",
        ]
    if tool == "rclone":
        remote = f":s3,provider=SeaweedFS,env_auth,endpoint='{endpoint}',region=us-east-1:{bucket}/{prefix}"
        streams = ("--transfers", "32", "--checkers", "32", "--multi-thread-streams", "16")
        return [str(bin_folder / "rclone"), "copy", *streams, "--use-server-modtime", remote, str(folder)]
    return [sys.executable, "-m", "bench.copies", tool, bucket, prefix, str(folder)]


def main() -> None:
    """Copy, then end at once: the interpreter's own end aborts now and then while obstore's threads still run."""
    TOOLS[sys.argv[1]](sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
