"""Options of the commands that also work on a deployed stack: `--aws`, and which stack, region and profile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from headrace.client.on_aws import DEFAULT_STACK, AwsClient, told_in_words


def open_client(stack: str, region: str | None, profile: str | None) -> AwsClient:
    """Return the client of a stack. Raises CloudUnavailable."""
    return AwsClient(stack, region, profile)


def names_a_stack(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--aws`, `--stack`, `--region` and `--profile`, and hand the command its AwsClient as `aws`."""

    @functools.wraps(command)
    def wrapped(*given: Any, aws: bool, stack: str, region: str | None, profile: str | None, **arguments: Any) -> int:
        if not aws:
            raise click.UsageError("jobs are submitted to a deployed stack: add --aws, or use `headrace run` here")
        return command(*given, aws=open_client(stack, region, profile), **arguments)

    return _with_options(wrapped)


def also_on_aws(command: Callable[..., int]) -> Callable[..., int]:
    """Add the same options; without `--aws`, `aws` is None and the command works on this machine."""

    @functools.wraps(command)
    def wrapped(*given: Any, aws: bool, stack: str, region: str | None, profile: str | None, **arguments: Any) -> int:
        if not aws and (region or profile or stack != DEFAULT_STACK):
            raise click.UsageError("--stack, --region and --profile go together with --aws")
        if not aws:
            return command(*given, aws=None, **arguments)
        with told_in_words():
            return command(*given, aws=open_client(stack, region, profile), **arguments)

    return _with_options(wrapped)


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    options = (
        click.option("--aws", is_flag=True, help="Work on the deployed stack, not on this machine."),
        click.option("--stack", metavar="NAME", default=DEFAULT_STACK, help=f"The stack (default: {DEFAULT_STACK})."),
        click.option("--region", metavar="NAME", help="Its region (default: the one your profile names)."),
        click.option("--profile", metavar="NAME", help="Whose credentials to use (default: those at hand)."),
    )
    for option in reversed(options):
        command = option(command)
    return command
