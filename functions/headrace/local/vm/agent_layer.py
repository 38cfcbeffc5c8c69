"""The part of a guest's files that is this product's own: the agent, compiled, and the Python packages it needs."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace.local.vm.image import Image, compile_python
from headrace.local.vm.making import alone, pack, run

AGENT_REQUIREMENTS = ("botocore>=1.40,<2", "obstore>=0.12,<0.13")
"""Those of agent/pyproject.toml."""

PROGRAMS = {
    "headrace-agent": "#!/usr/bin/python3\nimport sys\nfrom headrace_agent.__main__ import main\n\nsys.exit(main())\n",
    # The guest has no systemd; this is all that the agent asks of it.
    "systemctl": '#!/bin/sh\n[ "$1" = poweroff ] && exec busybox poweroff -f\nexit 1\n',
}


def agent_layer(image: Image, agent: Path, requirements: Sequence[str], folder: Path) -> Path:
    """Return a layer with the agent and the Python packages it needs, made for the guest's interpreter.

    The packages are fetched once, by pip; the agent's own files are packed each time. Raises VmUnavailable.
    """
    packages = image.root.parent.parent / f"packages-{_digest(*requirements)}"
    with alone(packages.parent):
        if not packages.exists():
            _fetch_packages(packages, requirements)
    root = folder / "agent"
    shutil.rmtree(root, ignore_errors=True)
    site = root / "usr/lib/python3/dist-packages"
    shutil.copytree(packages, site)
    shutil.copytree(agent, site / "headrace_agent", ignore=shutil.ignore_patterns("__pycache__"))
    compile_python(image.root, site / "headrace_agent", root)
    authorities = root / "etc/ssl/certs/ca-certificates.crt"
    authorities.parent.mkdir(parents=True)
    shutil.copy(packages / "botocore/cacert.pem", authorities)  # without any, obstore makes no client, even for http
    _write_programs(root)
    pack(root, folder / "agent.cpio")
    shutil.rmtree(root)
    return folder / "agent.cpio"


def _write_programs(root: Path) -> None:
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "python").symlink_to("/usr/bin/python3")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/sh").symlink_to("bash")


def _fetch_packages(target: Path, requirements: Sequence[str]) -> None:
    """Have pip choose the wheels of the guest's Python, which is Debian's and not the one that runs this."""
    made = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(made, ignore_errors=True)
    wanted = ("--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:")
    platforms = ("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")
    run((sys.executable, "-m", "pip", "install", "-q", "--target", str(made), *wanted, *platforms, *requirements))
    for service in (made / "botocore/data").glob("*/"):
        if service.is_dir() and service.name != "events":
            shutil.rmtree(service)
    made.rename(target)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
