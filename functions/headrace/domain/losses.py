"""What losing machines is expected to cost: more and smaller machines are lost more often."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.domain import calibration
from headrace.domain.candidates import Candidate
from headrace.domain.phases import Span, spans, usd_of

_SECONDS_PER_HOUR = 3600
_LOSSES_MAX = 20.0
"""Beyond so many expected losses a run that fails at the first never ends, and the figure says no more."""


class Losses(NamedTuple):
    """How many machines of each kind are expected to be lost and missed."""

    storage: float
    compute: float

    @property
    def chance(self) -> float:
        """The chance that at least one is."""
        return -math.expm1(-self.storage - self.compute)


def losses(candidate: Candidate) -> Losses:
    """Return the expected losses of a run; a mirrored storage node is not missed."""
    return _losses(candidate, spans(candidate))


def _losses(candidate: Candidate, phases: tuple[Span, ...]) -> Losses:
    hours = sum(span.eta_s for span in phases) / _SECONDS_PER_HOUR
    before = ("storage", "staging") if candidate.kind == "fleet" else ()
    with_compute = sum(span.eta_s for span in phases if span.name not in before) / _SECONDS_PER_HOUR
    storage = 0.0 if candidate.copies > 1 else candidate.storage_nodes * calibration.MACHINE_LOSSES_PER_HOUR * hours
    return Losses(storage, candidate.compute.count * candidate.compute.losses_per_hour * with_compute)


def usd_expected(candidate: Candidate) -> float:
    """Return what the run costs on average, with what is spent again after losses, in USD.

    A run that fails at a loss is taken to be started again until it succeeds: with L losses expected, e^L - 1 attempts
    fail, half-way on average. One that resumes repeats a launch, the copy that the lost machine held, and half the
    time between two checkpoints.
    """
    phases = spans(candidate)
    low, lost = usd_of(candidate, phases), _losses(candidate, phases)
    if candidate.job.on_node_loss == "fail":
        return round(low * (1 + math.expm1(min(sum(lost), _LOSSES_MAX)) / 2), 6)
    copied_s = sum(span.eta_s for span in phases if span.name == "staging")
    again_s = lost.storage * (calibration.LAUNCH_S + copied_s)
    again_s += lost.compute * (calibration.LAUNCH_S + _repeated_s(candidate))
    if candidate.kind == "local":
        again_s += lost.compute * copied_s
    hourly = candidate.storage_usd_per_hour + candidate.compute_usd_per_hour
    return round(low + again_s * hourly / _SECONDS_PER_HOUR, 6)


def _repeated_s(candidate: Candidate) -> float:
    """Return the training time that is done again after a loss."""
    training_s = candidate.job.duration_hours * _SECONDS_PER_HOUR
    return min(candidate.need.total.checkpoint_period_s or training_s, training_s) / 2
