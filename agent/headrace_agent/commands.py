"""The command line: what Systems Manager documents, the service unit and a curious person call."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import obstore

from headrace_agent import VERSION
from headrace_agent.action_failed import ActionFailed
from headrace_agent.config import parse_config
from headrace_agent.fields import ConfigError
from headrace_agent.files import write_atomically
from headrace_agent.lock import FolderBusy
from headrace_agent.machine import MAPPED
from headrace_agent.node import Node, load_node
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.spool import Spool
from headrace_agent.text import first_line

DESCRIPTION = "The headrace agent: configures this machine, moves data, supervises the job and reports."
EPILOG = """\
The node is described by the file that HEADRACE_NODE_FILE names (by default /var/lib/headrace/node.json). Systems
Manager documents pass SSM_RunId and SSM_ConfigReference (s3://<run bucket>/runs/<run id>/) in the environment; both
are optional and must agree with the node file. AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL_EVENTBRIDGE are honoured."""
"""Shown by --help."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        "headrace-agent", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("serve", help="report, run handed-in tasks and keep the deadline, until told to stop")
    configure = commands.add_parser("configure", help="make this machine what its configuration says")
    configure.add_argument("--print", action="store_true", dest="only_print", help="print the commands, change nothing")
    configure.add_argument(
        "--config", type=Path, metavar="FILE", help="read this configuration instead of the one in S3"
    )
    commands.add_parser("preflight", help="say what this machine can do, and fail if its configuration asks for more")
    commands.add_parser("probe", help="say what any machine can do of the data path, in JSON; needs no node")
    commands.add_parser("seal", help="close and seal the volumes of this storage node, and admit their readers")
    copy = commands.add_parser("copy-device", help="make a slice of this machine a copy of a device; needs no node")
    copy.add_argument("source", metavar="DEVICE")
    copy.add_argument("slice", metavar=f"/dev/mapper/{MAPPED}...")
    commands.add_parser("health", help="read a block of everything this node uses, and fail if something is wrong")
    commands.add_parser("release", help="undo everything: mounts, arrays, connections, exports, slices")
    commands.add_parser("stage", help="hand the staging of this node's share to the agent, and return")
    commands.add_parser("train", help="hand the job to the agent, and return")
    commands.add_parser(
        "salvage", help="hand what lost compute nodes left on this storage node to the agent, and return"
    )
    commands.add_parser("notice", help="tell the job in the file $HEADRACE_NOTICE that it will be ended soon")
    commands.add_parser("version", help="print the version")
    return parser


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command. Return its exit code; the last line of output says what happened."""
    options = build_parser().parse_args(arguments)
    if options.command == "version":
        return _say(f"headrace-agent {VERSION}")
    if options.command == "probe":
        return _probe()
    if options.command == "copy-device":
        return _copy_device(options.source, options.slice)
    try:
        node = load_node(environ)
        return OWN_ACTIONS.get(options.command, _hand_in)(node, environ, options)
    except (ConfigError, FolderBusy, ActionFailed, *S3_ERRORS) as error:
        reason = error if isinstance(error, (ConfigError, FolderBusy, ActionFailed)) else first_line(error)
        sys.stderr.write(f"headrace-agent {options.command}: {reason}\n")
        return 1


def config_text(node: Node, environ: Mapping[str, str]) -> str:
    """Return this node's config.json from the run bucket.

    Raises ConfigError when it is not there or the references given in the environment are another run's.
    """
    run_id = environ.get("SSM_RunId") or node.run_id
    reference = environ.get("SSM_ConfigReference") or f"s3://{node.run_bucket}/{node.prefix}"
    expected = f"s3://{node.run_bucket}/{node.prefix}"
    if run_id != node.run_id or reference.rstrip("/") != expected.rstrip("/"):
        raise ConfigError(
            f"the document was sent for run {run_id} at {reference}, "
            f"and this node belongs to run {node.run_id} at {expected}"
        )
    return _own_object(node, "config.json", "configuration").decode()


def _own_object(node: Node, name: str, what: str) -> bytes:
    key = f"{node.own_prefix}{name}"
    try:
        return bytes(obstore.get(open_bucket(node.run_bucket), key).bytes())
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {what} at s3://{node.run_bucket}/{key}; the control plane writes it") from error


def _serve(node: Node, environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.daemon import Daemon  # noqa: PLC0415 - the other commands need none of it

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    Daemon(node, environ).serve()
    sys.stderr.flush()
    os._exit(0)  # threads that hang in a system call must not keep a machine that is to go


def _configure(node: Node, environ: Mapping[str, str], options: argparse.Namespace) -> int:
    from headrace_agent.configure import actions_for, configure  # noqa: PLC0415 - the other commands need none of it
    from headrace_agent.reports import configured_body, leave_report  # noqa: PLC0415 - same

    text = options.config.read_text() if options.config else config_text(node, environ)
    config = parse_config(text)
    if options.only_print:
        return _say("\n".join(str(action) for action in actions_for(node, config)))
    done = configure(node, config, _say)
    write_atomically(node.configured, text)
    leave_report(
        node.folder / "spool", configured_body(done.actions, done.not_executed, done.fabric, done.demands_keys)
    )
    return _say(done.in_words)


def _hand_in(node: Node, environ: Mapping[str, str], options: argparse.Namespace) -> int:
    kind = options.command
    task_id, is_new = Spool(node.folder / "spool").hand_in(kind, config_text(node, environ))
    return _say(f"handed in {task_id}" if is_new else f"{task_id} was handed in before; it runs once")


def _notice(node: Node, environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.job_setup import folders_of  # noqa: PLC0415 - the other commands need none of it
    from headrace_agent.notice import append_notice, notice_line  # noqa: PLC0415 - same

    folders = folders_of(node, parse_config(config_text(node, environ)))
    line = notice_line(_own_object(node, "notice.json", "notice"))
    return _say(line if append_notice(folders.notice, line) else "the job was told before")


def _probe() -> int:
    from headrace_agent.preflight import report  # noqa: PLC0415 - the other commands need none of it

    return _say(json.dumps(report(), indent=2))


def _copy_device(source: str, to: str) -> int:
    from headrace_agent.device_copy import copy_device  # noqa: PLC0415 - as above

    if not to.startswith(f"/dev/mapper/{MAPPED}"):
        sys.stderr.write(f"headrace-agent copy-device: {to} is no slice of this machine (/dev/mapper/{MAPPED}...)\n")
        return 1
    try:
        copied = copy_device(source, to)
    except OSError as error:
        sys.stderr.write(f"headrace-agent copy-device: {source} to {to}: {error}\n")
        return 1
    return _say(f"{to} holds the {copied.bytes} bytes of {source}, {copied.written_bytes} of them written now")


def _preflight(node: Node, environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.configure import check_abilities, check_owner  # noqa: PLC0415 - as above

    _probe()
    config = parse_config(config_text(node, environ))
    check_owner(node, config)
    if node.process_node:
        return _say("a process node needs none of this")
    check_abilities(node, config)
    return _say(f"this machine can be a {config.role} node over the fabric {config.fabric}")


def _seal(node: Node, environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.configure import check_owner, seal  # noqa: PLC0415 - as above

    config = parse_config(config_text(node, environ))
    check_owner(node, config)
    seal(node, config, _say)
    return _say("sealed" if config.role == "storage" else "only storage nodes hold what is sealed")


def _health(node: Node, environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.health import troubles  # noqa: PLC0415 - as above

    found = [] if node.process_node else troubles(parse_config(config_text(node, environ)), node.volumes)
    _say(json.dumps({"healthy": not found, "troubles": found}, indent=2))
    return 1 if found else 0


def _release(node: Node, _environ: Mapping[str, str], _: argparse.Namespace) -> int:
    from headrace_agent.configure import release  # noqa: PLC0415 - as above

    node.configured.unlink(missing_ok=True)
    left = release(node, _say)
    if left:
        raise ActionFailed(f"still there after the release: {'; '.join(left)}")
    return _say("nothing is left of the data path")


OWN_ACTIONS: Mapping[str, Callable[[Node, Mapping[str, str], argparse.Namespace], int]] = {
    "serve": _serve,
    "configure": _configure,
    "notice": _notice,
    "preflight": _preflight,
    "seal": _seal,
    "health": _health,
    "release": _release,
}


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0
