"""SeaweedFS as the S3 of the benches: a real server that answers ranges as S3 does, in a folder, on loopback."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import boto3
import trustme

KEY, SECRET, BUCKET = "bench", "bench-secret", "bench-data"
PATIENCE_SECONDS = 60.0
AUTHORITY_FILE = "authority.pem"
GRPC_OFFSET = 10_000
"""How far above each of its ports weed takes another for gRPC."""


class Served(NamedTuple):
    """Where the server listens: in the clear, and over TLS, where it proves who it is by an authority's word."""

    port: int
    secure_port: int
    authority: Path

    @property
    def endpoint(self) -> str:
        """Return its address in the clear."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def secure_endpoint(self) -> str:
        """Return its address over TLS."""
        return f"https://127.0.0.1:{self.secure_port}"


@contextmanager
def weed(folder: Path) -> Iterator[Served]:
    """Serve the folder's buckets, of which BUCKET is made; yield where. Raises RuntimeError when it does not start.

    Ports are free ones. What an earlier server left in the folder is served again.
    """
    (folder / "data").mkdir(parents=True, exist_ok=True)
    identity = {"accessKey": KEY, "secretKey": SECRET}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    (folder / "s3.json").write_text(
        json.dumps({"identities": [{"name": "bench", "credentials": [identity], "actions": actions}]})
    )
    master, volume, filer, port, secure_port = free_ports(5)
    argv = [*_command(folder, master, volume, filer, port), *_secured(folder, secure_port)]
    with (folder / "weed.log").open("ab") as log:
        server = subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder)
    try:
        _await_bucket(port, server)
        yield Served(port, secure_port, folder / AUTHORITY_FILE)
    finally:
        server.terminate()
        server.wait()
        _remove_sockets((master, volume, filer, port))


def environment(endpoint: str, authority: Path) -> dict[str, str]:
    """Return the environment in which every S3 client finds the server, and trusts it."""
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_CA_BUNDLE": str(authority),
        "SSL_CERT_FILE": str(authority),
    }


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, with those GRPC_OFFSET above them."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(11_000, 22_000)
        if port not in found and _is_free(port) and _is_free(port + GRPC_OFFSET):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def _command(folder: Path, master: int, volume: int, filer: int, port: int) -> list[str]:
    return [
        *(str(Path(sys.executable).parent / "weed"), f"-logdir={folder}", "server", f"-dir={folder / 'data'}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}", f"-volume.port={volume}"),
        *("-filer", f"-filer.port={filer}", "-s3", f"-s3.port={port}", f"-s3.config={folder / 's3.json'}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=50", "-master.volumeSizeLimitMB=1024"),
        "-master.telemetry=false",
    ]


def _secured(folder: Path, port: int) -> list[str]:
    """Make a certificate for the server. Return the options by which it uses it."""
    authority, certificate, key = folder / AUTHORITY_FILE, folder / "certificate.pem", folder / "key.pem"
    maker = trustme.CA()
    issued = maker.issue_cert("127.0.0.1")
    maker.cert_pem.write_to_path(str(authority))
    issued.private_key_pem.write_to_path(str(key))
    certificate.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    return [f"-s3.port.https={port}", f"-s3.cert.file={certificate}", f"-s3.key.file={key}"]


def _remove_sockets(ports: Iterable[int]) -> None:
    """Remove the sockets that weed makes in /tmp, wherever its folder is, and leaves there."""
    for port in ports:
        for socket_port in (port, port + GRPC_OFFSET):
            for path in Path("/tmp").glob(f"seaweedfs-*-{socket_port}.sock"):  # noqa: S108 - weed's own choice
                path.unlink(missing_ok=True)


def _await_bucket(port: int, server: subprocess.Popen[bytes]) -> None:
    s3 = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    end, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while server.poll() is None and time.monotonic() < end:
        try:
            if BUCKET not in {one["Name"] for one in s3.list_buckets()["Buckets"]}:
                s3.create_bucket(Bucket=BUCKET)
            s3.put_object(Bucket=BUCKET, Key="ready", Body=b"1")
        except Exception:  # whatever it says while it starts
            pause.wait(0.2)
        else:
            return
    raise RuntimeError(f"weed does not serve; see {server.args!r}")
