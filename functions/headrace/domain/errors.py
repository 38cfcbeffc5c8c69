"""Errors that state machines catch by name, each named for the trouble and worded for the person who must act."""

from __future__ import annotations


class HeadraceError(Exception):
    """What every error of headrace is; its text says what was asked, what was found and what to change."""


class BadJob(HeadraceError):
    """A job description is not valid; every fault is listed with its place."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("the job description is not valid:\n" + "\n".join(f"  - {fault}" for fault in faults))


class BadSettings(HeadraceError):
    """A settings file is not valid; every fault is listed with its place."""

    def __init__(self, file: str, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__(f"{file} is not valid:\n" + "\n".join(f"  - {fault}" for fault in faults))


class UnknownTrigger(HeadraceError):
    """The input of an execution is neither an upload, a schedule nor a job."""


class InfeasibleJob(HeadraceError):
    """No plan satisfies the job; the text names the nearest thing that would."""


class DatasetUnusable(HeadraceError):
    """The data set is empty or holds keys that cannot become files."""


class DestinationDenied(HeadraceError):
    """A bucket that the run must write to or read from refuses it."""


class CapacityUnavailable(HeadraceError):
    """The cloud has too few machines of every acceptable type; the text lists what was tried."""


class QuotaExceeded(HeadraceError):
    """An account limit stops the launch; retrying cannot help."""


class NodeNotReady(HeadraceError):
    """Machines did not come up, or their configuration failed, more often than is allowed."""


class NodeLost(HeadraceError):
    """A machine that the run needs left before its work was done."""


class DatasetIncomplete(HeadraceError):
    """Staging ended without every file of the data set in place and verified."""


class JobFailed(HeadraceError):
    """The training command ended with a non-zero code or by a signal."""


class BudgetExceeded(HeadraceError):
    """The run has spent, or is about to spend, all that its budget allows."""


class DeadlineExceeded(HeadraceError):
    """The run, or its training, has lasted as long as its job allows."""


class ResultsIncomplete(HeadraceError):
    """The results manifest and the results bucket disagree; the text lists what is missing."""


class RunTombstoned(HeadraceError):
    """The run is being decommissioned, so nothing more may be launched for it."""


class NodesStillRunning(HeadraceError):
    """Machines of a run are still listed after they were asked to terminate; asking again is safe."""


class ObjectMissing(HeadraceError):
    """An object that the run wrote, or was told of, is not in its bucket."""


class AccessDenied(HeadraceError):
    """A policy forbids what was asked: storage answered 403, EC2 refused, or a role or secret may not be used."""


class CloudUnavailable(HeadraceError):
    """AWS cannot be reached, or refuses who asks; the text says what to set or to allow."""


class UnknownRun(HeadraceError):
    """No run has this id."""


class EventRefused(HeadraceError):
    """An event is forged, stale, foreign, replayed or malformed, and changes nothing."""


class StackInUse(HeadraceError):
    """The stack is to be deleted while runs live or machines stand; the text names them."""
