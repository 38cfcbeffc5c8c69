"""A machine's first minute, run here in a folder: bundle fetched, agent installed offline, node described."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from headrace_agent import VERSION
from headrace_agent.node import parse_node
from infra.checkout import CHECKOUT
from infra.wheels import agent_bundle

BOOT = CHECKOUT / "agent" / "boot"
TAGS = {
    "headrace:run-id": "digits-0123456789",
    "headrace:role": "storage",
    "headrace:attempt": "2",
    "headrace:stack": "lab",
    "headrace:deadline-at": "2026-12-01T03:00:00Z",
}
SECRET = "wJalrXUtnFEMI/K7MDENG"
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": SECRET, "Token": "session-token"}
FAKE_CURL = """\
import json, pathlib, shutil, sys
folder = pathlib.Path({folder!r})
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
url = sys.argv[-1]
if url.endswith("/api/token"):
    print("metadata-token", end="")
elif url.endswith("security-credentials/"):
    print("node-role")
elif url.endswith("/node-role"):
    print({keys!r})
else:
    (folder / "config").write_text(sys.stdin.read())
    shutil.copy(folder / "given.zip", sys.argv[sys.argv.index("-o") + 1])
"""


def fake(folder: Path, name: str, text: str) -> None:
    """Put a program of that name, written in Python, before all others."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)


def run(script: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(script)],
        env={"PATH": path, "HEADRACE_HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def first_boot(tmp_path: Path) -> Path:
    """Return a folder in which user data has run, with a bundle that only notes what it was told."""
    programs = tmp_path / "programs"
    fake(programs, "curl", FAKE_CURL.format(folder=str(tmp_path), keys=json.dumps(KEYS)))
    with zipfile.ZipFile(tmp_path / "given.zip", "w") as bundle:
        bundle.writestr("boot/boot.sh", 'echo "$HEADRACE_RUN_BUCKET $HEADRACE_NODE_ROLE_ID" > "$HEADRACE_HOME/told"')
    text = (BOOT / "user-data.sh").read_text()
    given = {"REGION": "eu-west-1", "DOMAIN": "amazonaws.com", "BUNDLE_BUCKET": "assets", "BUNDLE_KEY": "hash.zip"}
    for name, value in {**given, "RUN_BUCKET": "run-bucket", "NODE_ROLE_ID": "AROA1"}.items():
        text = text.replace(f"@{name}@", value)
    script = tmp_path / "user-data.sh"
    script.write_text(text)
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_bundle_is_fetched_with_the_machine_s_own_keys_and_started(first_boot: Path) -> None:
    assert (first_boot / "home" / "told").read_text() == "run-bucket AROA1\n"
    last = json.loads((first_boot / "calls").read_text().splitlines()[-1])
    assert last[-1] == "https://assets.s3.eu-west-1.amazonaws.com/hash.zip"
    assert last[last.index("--aws-sigv4") + 1] == "aws:amz:eu-west-1:s3"
    assert (first_boot / "config").read_text() == (
        f'user = "ASIAEXAMPLE:{SECRET}"\nheader = "x-amz-security-token: session-token"\n'
        f'header = "x-amz-content-sha256: {hashlib.sha256(b"").hexdigest()}"\n'
    )


def test_no_list_of_processes_shows_the_keys(first_boot: Path) -> None:
    calls = (first_boot / "calls").read_text()
    assert SECRET not in calls
    assert "session-token" not in calls


def test_a_machine_that_cannot_fetch_its_bundle_ends_itself(tmp_path: Path) -> None:
    fake(tmp_path / "programs", "curl", "import sys; sys.exit(22)")
    fake(tmp_path / "programs", "systemctl", f"open({str(tmp_path / 'asked')!r}, 'w').write(sys.argv[1])")
    program = tmp_path / "programs" / "systemctl"
    program.write_text(program.read_text().replace("\n", "\nimport sys\n", 1))
    done = run(BOOT / "user-data.sh", tmp_path)
    assert done.returncode != 0
    assert "boot failed in line" in done.stdout
    assert (tmp_path / "asked").read_text() == "poweroff"


class Signed(BaseHTTPRequestHandler):
    """Remembers the headers of the last request."""

    seen: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        type(self).seen = dict(self.headers)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_signs_as_s3_expects(first_boot: Path) -> None:
    """Arguments and configuration are those of the boot, the address is a server that looks at the signature."""
    arguments = json.loads((first_boot / "calls").read_text().splitlines()[-1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Signed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/hash.zip"
    command = ["curl", *arguments[:-1], url]
    subprocess.run(command, input=(first_boot / "config").read_text(), text=True, check=True, capture_output=True)
    server.shutdown()
    thread.join()
    server.server_close()
    assert signature(url, Signed.seen) in Signed.seen["Authorization"]


def signature(url: str, headers: dict[str, str]) -> str:
    """Return the signature that botocore makes of the headers which were signed."""
    names = headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    signed = {name: value for name, value in headers.items() if name.lower() in names}
    request = AWSRequest("GET", url, headers=signed)
    request.context["timestamp"] = headers["X-Amz-Date"]
    auth = S3SigV4Auth(Credentials(KEYS["AccessKeyId"], SECRET, KEYS["Token"]), "s3", "eu-west-1")
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


@pytest.mark.skipif(
    os.geteuid() != 0 or None in (shutil.which("nft"), shutil.which("unshare"), shutil.which("setpriv")),
    reason="needs root, nftables and a network namespace; not executed here",
)
def test_nobody_but_root_reaches_the_metadata() -> None:
    ask = "curl -s -o /dev/null -m 3 -w '%{http_code}\n' http://169.254.169.254/"
    commands = [
        "ip link set lo up && ip addr add 169.254.169.254/32 dev lo",
        # Twice, as on every boot and restart of the unit.
        f"nft -f {BOOT}/metadata.nft && nft -f {BOOT}/metadata.nft",
        f"{sys.executable} -m http.server 80 --bind 169.254.169.254 >/dev/null 2>&1 & server=$!",
        f"until {ask} >/dev/null; do :; done",
        f"{ask}; setpriv --reuid 65534 --clear-groups {ask} || true; kill $server",
    ]
    done = subprocess.run(
        ["unshare", "-n", "bash", "-c", "\n".join(commands)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["200", "000"]


class Metadata(BaseHTTPRequestHandler):
    """Instance metadata, version 2: nothing without a token."""

    def do_PUT(self) -> None:
        self._answer("token-1" if self.path == "/latest/api/token" else None)

    def do_GET(self) -> None:
        known = {"/latest/meta-data/instance-id": "i-0aaa"}
        known |= {f"/latest/meta-data/tags/instance/{name}": value for name, value in TAGS.items()}
        has_token = self.headers.get("X-aws-ec2-metadata-token") == "token-1"
        self._answer(known.get(self.path) if has_token else None)

    def _answer(self, text: str | None) -> None:
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def metadata() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/latest"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory, metadata: str) -> Path:
    """Return a folder in which the boot script of a real bundle has run, without a network for pip."""
    tmp_path = tmp_path_factory.mktemp("booted")
    home = tmp_path / "home"
    home.mkdir()
    for part in ("boot", "systemd", "wheels"):
        (home / part).symlink_to(agent_bundle() / part)
    units, programs = tmp_path / "units", tmp_path / "bin"
    units.mkdir()
    programs.mkdir()
    note = f"import sys; open({str(tmp_path / 'asked')!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10))"
    fake(tmp_path / "programs", "systemctl", note)
    fake(tmp_path / "programs", "useradd", note)
    fake(tmp_path / "programs", "id", "raise SystemExit(1)")
    done = run(
        BOOT / "boot.sh",
        tmp_path,
        HEADRACE_UNITS=str(units),
        HEADRACE_BIN=str(programs),
        HEADRACE_METADATA=metadata,
        HEADRACE_NODE_FILE=str(tmp_path / "lib" / "node.json"),
        HEADRACE_RUN_BUCKET="run-bucket",
        HEADRACE_NODE_ROLE_ID="AROA1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


def test_a_machine_makes_itself_from_the_bundle(booted: Path) -> None:
    for program in (booted / "bin" / "headrace-agent", booted / "home" / "bin" / "headrace-agent"):
        said = subprocess.run([str(program), "version"], capture_output=True, text=True, check=True)
        assert said.stdout == f"headrace-agent {VERSION}\n"
    names = [path.stem for path in (CHECKOUT / "agent" / "headrace_agent").glob("[a-z]*.py")]
    every = "; ".join(f"import headrace_agent.{name}" for name in names)
    subprocess.run([str(booted / "home" / "venv" / "bin" / "python"), "-I", "-c", every], check=True)
    described = json.loads((booted / "lib" / "node.json").read_text())
    assert described["node_folder"] == "AROA1:i-0aaa"
    node = parse_node(json.dumps(described), "node.json")
    assert (node.run_id, node.role, node.attempt, node.event_bus) == ("digits-0123456789", "storage", 2, "lab")
    assert (node.node_id, node.run_bucket, node.process_node) == ("i-0aaa", "run-bucket", False)
    units = {path.name for path in (CHECKOUT / "agent" / "systemd").iterdir() if path.suffix != ".sh"}
    assert {path.name for path in (booted / "units").iterdir()} == units


def test_the_deadline_is_watched_first_and_the_agent_starts_last(booted: Path) -> None:
    assert (booted / "asked").read_text().splitlines() == [
        "daemon-reload",
        "enable --now headrace-deadline.timer",
        "enable --now headrace-metadata.service",
        "--system --create-home --home-dir /var/lib/headrace-job --shell /usr/sbin/nologin headrace-job",
        "enable --now headrace-agent.service",
    ]


def test_units_start_what_the_bundle_has() -> None:
    units = "".join(path.read_text() for path in (CHECKOUT / "agent" / "systemd").glob("*.service"))
    assert "ExecStart=/opt/headrace/bin/headrace-agent serve" in units
    assert "ExecStart=/bin/sh /opt/headrace/systemd/headrace-deadline.sh" in units
    assert "ExecStart=/usr/sbin/nft -f /opt/headrace/boot/metadata.nft" in units
    assert "Requires=headrace-metadata.service" in (CHECKOUT / "agent/systemd/headrace-agent.service").read_text()


def test_wheels_are_there_for_both_architectures() -> None:
    found = {folder.name: {path.name.split("-")[0] for path in folder.glob("*.whl")} for folder in wheel_folders()}
    assert set(found) == {"aarch64", "x86_64"}
    assert found["aarch64"] == found["x86_64"] >= {"obstore", "botocore"}
    assert [path.name for path in (agent_bundle() / "wheels").glob("*.whl")] == [
        f"headrace_agent-{VERSION}-py3-none-any.whl"
    ]


def wheel_folders() -> list[Path]:
    return [path for path in (agent_bundle() / "wheels").iterdir() if path.is_dir()]
