"""Makes the job's Python environment when it names requirements: a venv beside the code, filled by pip."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace_agent.job_log import JobLog
from headrace_agent.job_user import JobUser, as_user
from headrace_agent.safe_paths import UnsafePath, parts_of

READ_BYTES = 64 * 1024


class RequirementsFailed(Exception):
    """The job's packages could not be installed; the text says why."""


def own_bin() -> Path:
    """Return the folder of the interpreter that runs the agent."""
    return Path(sys.executable).parent


@dataclass(frozen=True)
class Installer:
    """Runs the steps of an installation in the code folder, their output in the job's log."""

    work: Path
    environ: Mapping[str, str]
    log: JobLog
    stop: threading.Event
    user: JobUser | None = None
    """Who runs it: packages may run code of their own while they are installed."""

    def install(self, requirements: str, target: Path) -> Path:
        """Make a venv at `target` that also sees the agent's packages, and install the requirements file into it.

        Wheels in the code folder are found. Return its bin folder; raises RequirementsFailed.
        """
        path = self._requirements_file(requirements)
        wheels = [option for folder in _wheel_folders(self.work) for option in ("--find-links", str(folder))]
        self._make(target)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        self._run([*pip, *wheels, "-r", str(path)])
        return target / "bin"

    def _make(self, target: Path) -> None:
        self._run([sys.executable, "-m", "venv", "--system-site-packages", str(target)])
        _show_own_packages(target)

    def _requirements_file(self, requirements: str) -> Path:
        try:
            path = self.work.joinpath(*parts_of(requirements))
        except UnsafePath as error:
            raise RequirementsFailed(f"environment.requirements: {error}") from error
        if not path.is_file():
            raise RequirementsFailed(f"environment.requirements names {requirements}, which is not in the job's code")
        return path

    def _run(self, argv: Sequence[str]) -> None:
        self.log.note("running " + " ".join(argv))
        with subprocess.Popen(
            argv,
            cwd=self.work,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
            **as_user(self.user),
        ) as process:
            threading.Thread(target=_kill_when_stopped, args=(process, self.stop), daemon=True).start()
            self._copy_output(process)
        if process.returncode != 0:
            raise RequirementsFailed(f"installing the job's packages failed; `{' '.join(argv)}` is in the log")

    def _copy_output(self, process: subprocess.Popen[bytes]) -> None:
        while process.stdout and (data := process.stdout.read(READ_BYTES)):
            self.log.write(data)


def _show_own_packages(target: Path) -> None:
    """Let the venv see this interpreter's packages too: where it is a venv itself, --system-site-packages does not."""
    own = sysconfig.get_path("purelib")
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(target), "platbase": str(target)}))
    (folder / "headrace-agent.pth").write_text(f"{own}\n")


def _wheel_folders(work: Path) -> list[Path]:
    return sorted({wheel.parent for wheel in work.rglob("*.whl")})


def _kill_when_stopped(process: subprocess.Popen[bytes], stop: threading.Event) -> None:
    while process.poll() is None:
        if stop.wait(0.2):
            process.kill()
            return
