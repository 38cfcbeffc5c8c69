"""All commands together, and how they end: 0 well, 1 a failed run, 2 bad usage or job, 130 stopped."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from headrace.cli.doctor import doctor
from headrace.cli.init import init
from headrace.cli.logs import logs
from headrace.cli.ls import ls
from headrace.cli.options import EXIT_BAD_USAGE, EXIT_STOPPED, aside
from headrace.cli.plan import plan
from headrace.cli.receipt import receipt
from headrace.cli.replay import replay
from headrace.cli.run import run
from headrace.cli.status import status
from headrace.cli.stop import stop
from headrace.cli.submit import submit
from headrace.cli.watch import watch
from headrace.domain.errors import HeadraceError


@click.group(
    epilog="Begin with: headrace init digits && headrace run digits/job.yaml",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("headrace"), message="headrace %(version)s")
@click.option("--home", metavar="DIR", help="Folder of all state (default: HEADRACE_HOME, or ~/.headrace).")
def app(home: str | None) -> None:  # the commands read it from the context
    """Plan, run and end a training job together with the storage that feeds it.

    Everything happens on this machine, where no account is needed and nothing is bought, unless --aws names a stack.

    Exit codes: 0 done, 1 the run failed, 2 bad usage or job, 130 stopped.
    """


for command in (plan, run, submit, ls, status, watch, logs, stop, receipt, init, replay, doctor):
    app.add_command(command)


def run_app(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; what a person can act on is said without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return int(app.main(arguments, prog_name="headrace", standalone_mode=False) or 0)
    except HeadraceError as error:
        for line in str(error).split("\n"):
            aside(line)
        return EXIT_BAD_USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        return EXIT_STOPPED
    except BrokenPipeError:
        return 0
