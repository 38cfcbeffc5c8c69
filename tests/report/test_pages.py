"""What each page looks like, at the width of a narrow terminal and of a wide one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import RenderableType

from headrace.domain.run import NodeRow
from headrace.report.console import text_of
from headrace.report.end_page import Ended, end_page
from headrace.report.plan_page import plan_page
from headrace.report.receipt_page import receipt_page
from headrace.report.run_page import run_page
from headrace.report.runs_page import runs_page
from tests.report import samples

STAGING = samples.row(("admitted", 1), ("inspecting", 1.1), ("planning", 1.5), ("storage", 2), ("staging", 6))
TRAINING = samples.row(("storage", 2), ("staging", 6), ("compute", 11), ("training", 12.5))
COPYING = {"files": 512, "bytes": 38_400, "total_files": 899, "total_bytes": 67_400, "rate_bytes_per_s": 12_800}
STEP = {"step": 60, "total_steps": 120, "metrics": {"loss": "0.0312", "accuracy": "0.9637"}, "message": None}


def staging_nodes() -> tuple[NodeRow, ...]:
    state = {"state": "configured", "activity": "staging", "staged": COPYING}
    return samples.node("storage", 0, **state), samples.node("storage", 1, **state)


def training_nodes() -> tuple[NodeRow, ...]:
    saved = {"files": 1, "bytes": 39_470}
    worker = samples.node("compute", 0, state="training", activity="training", job=STEP, results=saved)
    return samples.node("storage", 0, state="staged"), samples.node("storage", 1, state="staged"), worker


PAGES: dict[str, RenderableType] = {
    "plan": plan_page(samples.plan()),
    "receipt": receipt_page(samples.receipt(), f"/home/ada/headrace-results/{samples.RUN_ID}"),
    "receipt-failed": end_page(
        Ended(
            samples.receipt(
                status="FAILED",
                reason="TrainJob: JobFailed: node i-compute00000000: the command ended with exit code 1",
                job_done_at=None,
                resources=(
                    samples.resource("compute", 0, 20.25, seconds_after_job_done=None),
                    samples.resource("storage", 0, None),
                ),
                results=None,
                estimated_usd_low=None,
                estimated_usd_high=None,
            ),
            (samples.node("compute", 0, state="failed", job={"log_tail": "epoch 1\nTraceback:\n  ValueError: no\n"}),),
        )
    ),
    "run-staging": run_page(samples.snapshot(STAGING, *staging_nodes(), second=9), samples.plan()),
    "run-training": run_page(samples.snapshot(TRAINING, *training_nodes(), second=20), samples.plan()),
    "run-many-nodes": run_page(
        samples.snapshot(STAGING, *(samples.node("storage", number, state="ready") for number in range(1000)), second=9)
    ),
    "run-failed": run_page(
        samples.snapshot(
            samples.row(
                ("storage", 2), ("ending", 9), ("ended", 11), status="FAILED", ended_at=samples.at(11)
            ).model_copy(update={"failure": "ProvisionStorage: CapacityUnavailable: no i4i.large in us-east-1a"}),
            samples.node("storage", 0, state="released", released_at=samples.at(10)),
            second=59,
        )
    ),
    "runs": runs_page(
        [
            samples.snapshot(TRAINING, *training_nodes(), second=20),
            samples.snapshot(
                samples.row(("ended", 9), run_id="digits-0a1b2c3d4e", status="SUCCEEDED", ended_at=samples.at(9)),
                samples.node("compute", 0, released_at=samples.at(8.5)),
                second=20,
            ),
        ]
    ),
    "runs-none": runs_page([]),
}


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_looks_as_it_was_agreed(name: str, columns: int, golden: Callable[[str, str], None]) -> None:
    page = text_of(PAGES[name], columns)
    wide = [line for line in page.splitlines() if len(line) > columns]
    assert [line for line in wide if not line.startswith("results ")] == [], "only a path may be wider than the page"
    golden(f"report/{name}-{columns}.txt", page)
