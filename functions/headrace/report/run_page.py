"""A run as it stands: its phases with their progress, and its machines. Drawn live, and by `status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headrace.domain.instants import seconds_between, to_text
from headrace.domain.plan import Plan
from headrace.domain.run import NodeRow
from headrace.report.cells import cell, section, status_cell, table
from headrace.report.change_lines import PHASE_WORDS, metrics_text
from headrace.report.progress import current_nodes, phase_seconds, saved_of, staging_of, training_of, usd_so_far
from headrace.report.quantities import bytes_text, count_text, duration_text, rate_text, usd_text
from headrace.report.view import Snapshot

ALWAYS_SHOWN = ("staging", "training", "ending")
BAR_COLUMNS = 16
NODES_SHOWN = 8


def run_page(snapshot: Snapshot, plan: Plan | None = None) -> RenderableType:
    """Return the run's state; with its plan, the phases also show how long they were to take."""
    return Group(*_parts(snapshot, plan))


def _parts(snapshot: Snapshot, plan: Plan | None) -> Iterator[RenderableType]:
    yield _title(snapshot)
    yield _phases(snapshot, plan)
    if snapshot.nodes:
        yield section("machines", _machines(snapshot))
    if snapshot.row.failure:
        yield section("reason", cell(snapshot.row.failure, "red"))
    if snapshot.row.stop_requested_by and snapshot.row.status == "RUNNING":
        yield cell(f"stopping, asked for by {snapshot.row.stop_requested_by}", "yellow")


def _title(snapshot: Snapshot) -> Text:
    row = snapshot.row
    took = duration_text(max(0.0, seconds_between(row.started_at, row.ended_at or to_text(snapshot.now))))
    spent = usd_text(usd_so_far(snapshot.nodes, snapshot.now))
    return Text.assemble(
        cell(row.run_id, "bold"), "  ", status_cell(row.status), "  ", cell(f"{took}, {spent} so far at list prices")
    )


def _phases(snapshot: Snapshot, plan: Plan | None) -> Table:
    made = table("phase", "took", "planned", "", "", right=("took", "planned"))
    planned = {phase.name: phase.eta_s for phase in plan.chosen.phases} if plan else {}
    took = dict(phase_seconds(snapshot.row, snapshot.now))
    is_open = snapshot.row.status == "RUNNING"
    now = snapshot.row.phases[-1].name if snapshot.row.phases and is_open else None
    for name in PHASE_WORDS:
        if name not in took and name not in planned and name not in ALWAYS_SHOWN:
            continue
        style = "bold" if name == now else "" if name in took else "dim"
        spent = duration_text(took[name]) if name in took else ""
        due = duration_text(planned[name]) if name in planned else ""
        bar, words = _progress(name, snapshot, is_now=name == now)
        made.add_row(cell(name, style), cell(spent, style), cell(due, "dim"), bar, cell(words, style))
    return made


def _progress(name: str, snapshot: Snapshot, *, is_now: bool) -> tuple[RenderableType, str]:
    if name == "staging":
        return _staging(snapshot)
    if name == "training":
        return _training(snapshot)
    if name == "collecting":
        saved = saved_of(snapshot.nodes)
        return "", f"{count_text(saved.files, 'file')}, {bytes_text(saved.bytes)}" if saved else ""
    return "", PHASE_WORDS[name] if is_now else ""


def _staging(snapshot: Snapshot) -> tuple[RenderableType, str]:
    staging = staging_of(snapshot.row, snapshot.nodes)
    if staging is None:
        return "", ""
    words = f"{staging.files:,} of {count_text(staging.total_files, 'file')}, {bytes_text(staging.bytes)}"
    if staging.eta_seconds and staging.share < 1:
        words += f", {rate_text(staging.rate_bytes_per_s)}, {duration_text(staging.eta_seconds)} left"
    return _bar(staging.share), words


def _training(snapshot: Snapshot) -> tuple[RenderableType, str]:
    training, saved = training_of(snapshot.nodes), saved_of(snapshot.nodes)
    bar: RenderableType = ""
    words = []
    if training is not None and training.step is not None:
        words.append(f"step {training.step:,}" + (f" of {training.total_steps:,}" if training.total_steps else ""))
        bar = _bar(min(1.0, training.step / training.total_steps)) if training.total_steps else ""
    if training is not None:
        words.extend(text for text in (metrics_text(training.metrics), training.message) if text)
    if saved is not None:
        words.append(f"{count_text(saved.files, 'file')} saved, {bytes_text(saved.bytes)}")
    return bar, ", ".join(words)


def _bar(share: float) -> ProgressBar:
    return ProgressBar(total=1.0, completed=share, width=BAR_COLUMNS)


def _machines(snapshot: Snapshot) -> Table:
    made = table("role", "type", "machine", "state", "")
    nodes = current_nodes(snapshot.nodes)
    for node in nodes[:NODES_SHOWN]:
        words = (f"{node.role} {node.index}", node.instance_type, node.node_id)
        made.add_row(*(cell(text) for text in words), _state(node), cell(_doing(node)))
    if len(nodes) > NODES_SHOWN:
        states = Counter(node.state for node in nodes[NODES_SHOWN:])
        counted = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
        made.add_row(cell(f"and {len(nodes) - NODES_SHOWN:,} more"), "", "", cell(counted))
    return made


def _doing(node: NodeRow) -> str:
    if node.state == "failed":
        return node.failure or ""
    if node.state == "released":
        return ""
    return "; ".join((node.activity, *node.troubles))


def _state(node: NodeRow) -> Text:
    return cell(node.state, "red" if node.state == "failed" else "green" if node.state == "released" else "")
