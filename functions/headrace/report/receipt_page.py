"""The receipt as a page: every resource and when it was released, planned against actual, the bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.domain.receipt import Receipt
from headrace.report.cells import cell, facts, section, status_cell, table
from headrace.report.quantities import bytes_text, count_text, duration_text, instant_text, usd_text


def receipt_page(receipt: Receipt, results_folder: str | None) -> RenderableType:
    """Return the whole receipt; `results_folder` is where the results are on this machine, when they are."""
    return Group(*_parts(receipt, results_folder))


def _parts(receipt: Receipt, results_folder: str | None) -> Iterator[RenderableType]:
    yield cell(f"receipt of {receipt.run_id}", "bold")
    yield facts(_facts(receipt))
    yield from _results_line(receipt, results_folder)
    yield section("resources", _resources(receipt))
    if receipt.phases:
        yield section("phases", _phases(receipt))
    if receipt.remarks:
        yield section("remarks", cell("\n".join(receipt.remarks)))
    if receipt.not_executed:
        yield section("not executed here", cell(not_executed_text(receipt.not_executed)))
    yield ""
    yield cell(receipt.note, "dim")


def _facts(receipt: Receipt) -> Iterator[tuple[str, str | Text]]:
    yield "status", status_cell(receipt.status)
    if receipt.reason:
        yield "reason", receipt.reason
    yield "job", receipt.job_name
    yield "time", f"{receipt.started_at} to {receipt.ended_at}"
    if receipt.job_done_at:
        yield "job done", receipt.job_done_at
    yield "bill", bill_text(receipt)


def _results_line(receipt: Receipt, results_folder: str | None) -> Iterator[Text]:
    """Yield where the results are on one line, however long: a path is copied whole or not at all."""
    where = results_folder or receipt.results
    if where:
        saved = f"{count_text(receipt.results_files, 'file')}, {bytes_text(receipt.results_bytes)}"
        line = cell(f"results   {where} ({saved})")
        line.stylize("bold", 0, len("results"))
        line.no_wrap, line.overflow = True, "ignore"
        yield line


def bill_text(receipt: Receipt) -> str:
    """Return the bill against the estimate: `0.0104 USD, estimated 0.0100 USD to 0.0200 USD`."""
    low, high = receipt.estimated_usd_low, receipt.estimated_usd_high
    if low is None or high is None:
        return f"{usd_text(receipt.usd)}, never estimated"
    return f"{usd_text(receipt.usd)}, estimated {usd_text(low)} to {usd_text(high)}"


def _resources(receipt: Receipt) -> Table:
    made = table("resource", "kind", "role", "type", "released", "after job", "USD", right=("after job", "USD"))
    for one in receipt.resources:
        released = cell(instant_text(one.released_at, receipt.started_at) if one.released_at else "NEVER")
        if not one.released_at:
            released.stylize("bold red")
        after = "" if one.seconds_after_job_done is None else f"{one.seconds_after_job_done:+.1f} s"
        words = (one.resource_id.removeprefix(f"{one.kind} of "), one.kind, one.role, one.instance_type)
        made.add_row(*(cell(text) for text in words), released, cell(after), cell(f"{one.usd:.4f}"))
    return made


def _phases(receipt: Receipt) -> Table:
    made = table("phase", "planned", "actual", right=("planned", "actual"))
    for phase in receipt.phases:
        planned = "" if phase.planned_seconds is None else duration_text(phase.planned_seconds)
        made.add_row(cell(phase.name), cell(planned), cell(duration_text(phase.seconds)))
    return made


def not_executed_text(commands: Iterable[str]) -> str:
    """Return how many commands were only recorded, by program: what a process node cannot do to a real machine."""
    programs = Counter(_program(command) for command in commands if command.strip())
    counts = ", ".join(f"{times} x {program}" for program, times in programs.most_common())
    return f"{counts}; recorded only, word for word in --json"


def _program(command: str) -> str:
    """Return what a recorded line begins with; the agent writes its own waits as comments."""
    return command.removeprefix("# ").split(maxsplit=1)[0]
