"""Starting a command, and how it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from headrace_agent.job_log import JobLog
from headrace_agent.trainer import CannotStart, Ending, Trainer, ending_of, make_killable

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def log(tmp_path: Path) -> JobLog:
    return JobLog(tmp_path / "train.log", 100_000)


def ran(log: JobLog, folder: Path, *argv: str) -> Ending:
    trainer = Trainer(argv, folder, ENVIRONMENT, log)
    ending = trainer.wait(30)
    trainer.finish_output(30)
    assert ending
    return ending


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 130, 137, 255])
def test_an_exit_code_is_kept_and_never_taken_for_a_signal(tmp_path: Path, log: JobLog, code: int) -> None:
    ending = ran(log, tmp_path, sys.executable, "-c", f"raise SystemExit({code})")
    assert ending == Ending(code, None)
    assert ending.is_good == (code == 0)
    log.close()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT"])
def test_a_signal_is_told_by_its_name(tmp_path: Path, log: JobLog, name: str) -> None:
    ending = ran(log, tmp_path, sys.executable, "-c", f"import os,signal; os.kill(os.getpid(), signal.{name})")
    assert (ending, ending.in_words()) == (Ending(None, name), f"the command was ended by {name}")
    log.close()


def test_a_real_time_signal_has_a_number_only() -> None:
    assert ending_of(-40) == Ending(None, "signal 40")


def test_output_and_errors_are_in_the_log_and_input_is_empty(tmp_path: Path, log: JobLog) -> None:
    code = "import sys; print('in', repr(sys.stdin.read()), flush=True); print('err', file=sys.stderr)"
    ran(log, tmp_path, sys.executable, "-c", code)
    log.close()
    assert log.path.read_text() == "in ''\nerr\n"


def test_the_command_leads_its_own_session(tmp_path: Path, log: JobLog) -> None:
    ran(log, tmp_path, sys.executable, "-c", "import os; print(os.getpid() == os.getsid(0) == os.getpgrp())")
    log.close()
    assert log.path.read_text() == "True\n"


def test_stopping_signals_the_whole_group_and_waits_for_its_grace(tmp_path: Path, log: JobLog) -> None:
    code = (
        "import os,signal,sys,time\n"
        "child = os.fork()\n"
        "def leave(*_):\n"
        "    print('parent left' if child else 'child left', flush=True)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    trainer = Trainer([sys.executable, "-c", code], tmp_path, ENVIRONMENT, log)
    while log.tail().count("up") < 2:
        assert trainer.wait(0.02) is None
    meanwhile: list[int] = []
    assert trainer.stop(30, lambda: meanwhile.append(1)) == Ending(7, None)
    trainer.finish_output(30)
    log.close()
    assert sorted(log.path.read_text().splitlines()) == ["child left", "parent left", "up", "up"]


def script(folder: Path, name: str, text: str, mode: int = 0o755) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(mode)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("no-such-program", r"the program 'no-such-program' was not found on PATH"),
        ("./absent.sh", r"the program './absent.sh' is not in the job's code"),
        ("./plain.sh", r"the program './plain.sh' may not be executed; make it executable"),
        ("./foreign.sh", r"the program './foreign.sh' is there, but not the interpreter that its first line"),
        ("./nothing", r"the program './nothing' cannot be started: Exec format error"),
        ("nul\0byte", r"the command cannot be started: embedded null byte"),
    ],
)
def test_a_program_that_cannot_start_is_named_with_the_reason(
    tmp_path: Path, log: JobLog, program: str, told: str
) -> None:
    script(tmp_path, "plain.sh", "#!/bin/sh\n", 0o644)
    script(tmp_path, "foreign.sh", "#!/no/such/interpreter\n")
    script(tmp_path, "nothing", "\x7fELF of no machine")
    with pytest.raises(CannotStart, match=told):
        Trainer([program], tmp_path, ENVIRONMENT, log)
    log.close()


def test_a_program_of_the_code_is_started_from_the_work_folder(tmp_path: Path, log: JobLog) -> None:
    script(tmp_path, "run.sh", '#!/bin/sh\necho "here: $1"\n')
    assert ran(log, tmp_path, "./run.sh", "$(id)").is_good
    log.close()
    assert log.path.read_text() == "here: $(id)\n"


@pytest.mark.parametrize(("inherited", "left"), [("-900\n", "0"), ("0\n", "0\n"), ("300\n", "300\n")])
def test_a_job_does_not_inherit_what_protects_the_agent_when_memory_runs_out(
    tmp_path: Path, inherited: str, left: str
) -> None:
    score = tmp_path / "5" / "oom_score_adj"
    score.parent.mkdir()
    score.write_text(inherited)
    make_killable(5, tmp_path)
    assert score.read_text() == left


def test_a_job_that_ended_at_once_needs_no_score(tmp_path: Path) -> None:
    make_killable(5, tmp_path)
    assert list(tmp_path.iterdir()) == []
