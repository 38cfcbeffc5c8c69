"""What a run adds to the metrics of its stack, taken from its receipt and told once, when the receipt is written."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain.receipt import Receipt
from headrace.domain.run import NodeRow

Measures = dict[str, tuple[str, float]]
"""Name to CloudWatch's name of the unit and the value."""


def measures_of(receipt: Receipt, nodes: Sequence[NodeRow]) -> Measures:
    """Return `Runs<Status>`, `Usd`, `BytesStaged`, `<Phase>Seconds`, and `ReleaseSeconds`.

    The last is what lay between the end of the job and the release of the last compute node; a run whose job did not
    end has none. CloudWatch knows no unit for money, so `Usd` counts.
    """
    measures: Measures = {
        f"Runs{receipt.status.title()}": ("Count", 1),
        "Usd": ("Count", receipt.usd),
        "BytesStaged": ("Bytes", sum(node.staged.get("bytes", 0) for node in nodes)),
    }
    measures |= {f"{phase.name.title()}Seconds": ("Seconds", phase.seconds) for phase in receipt.phases}
    waits = [
        one.seconds_after_job_done
        for one in receipt.resources
        if one.kind == "node" and one.role == "compute" and one.seconds_after_job_done is not None
    ]
    if waits:
        measures["ReleaseSeconds"] = ("Seconds", max(0.0, *waits))
    return measures
