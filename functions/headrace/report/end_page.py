"""The end of a run as a page: the receipt and, when the command failed, its last words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType

from headrace.domain.receipt import Receipt
from headrace.domain.run import NodeRow
from headrace.report.cells import cell, section
from headrace.report.plain_text import plain_log_line
from headrace.report.receipt_page import receipt_page

LAST_LINES = 15


@dataclass(frozen=True)
class Ended:
    """A run that is over; `results_folder` is on this machine, when the results are."""

    receipt: Receipt
    nodes: tuple[NodeRow, ...] = ()
    results_folder: str | None = None


def end_page(ended: Ended) -> RenderableType:
    """Return the receipt, with the end of the command's output above it when the run failed."""
    return Group(*_parts(ended))


def _parts(ended: Ended) -> Iterator[RenderableType]:
    if ended.receipt.status == "FAILED":
        for node in ended.nodes:
            lines = last_lines(str(node.job.get("log_tail") or ""))
            if lines:
                yield section(f"last output of {node.node_id}", Group(*(cell(line) for line in lines)))
                yield ""
    yield receipt_page(ended.receipt, ended.results_folder)
    if ended.receipt.status == "FAILED":
        yield cell(f"The whole output: headrace logs {ended.receipt.run_id}", "dim")


def last_lines(log: str) -> tuple[str, ...]:
    """Return the last lines of a log, each safe to show."""
    return tuple(plain_log_line(line) for line in log.rstrip("\n").split("\n")[-LAST_LINES:] if log.strip())
