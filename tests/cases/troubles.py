"""Small troubles for a simulated cloud: a call that fails at first, answers that come late, functions cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.domain.launch import LaunchRequest
from headrace.local.interpreter import TaskError
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from headrace.ports import LaunchResult
from tests.simulated_runs import only_run

Call = Callable[..., Any]


def failing_first(times: int, error: Exception, call: Call) -> Call:
    """Return the call, which raises the error that many times before it does anything."""
    left = [times]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return call(*args, **kwargs)

    return failing


def failing_after_first(error: Exception, call: Call) -> Call:
    """Return the call, which does its work and then raises, the first time."""
    left = [1]

    def failing(*args: Any, **kwargs: Any) -> Any:
        answer = call(*args, **kwargs)
        if left[0]:
            left[0] -= 1
            raise error
        return answer

    return failing


def after_launch(site: SimulatedSite, effect: Callable[[LaunchRequest, LaunchResult], None]) -> None:
    """Have something happen right after each launch of the site."""
    launch = site.fleets.launch

    def launching(request: LaunchRequest) -> LaunchResult:
        result = launch(request)
        effect(request, result)
        return result

    site.fleets.launch = launching  # type: ignore[method-assign, assignment]


def cut_short(site: SimulatedSite, function: str, error: str = "Sandbox.Timedout") -> None:
    """Let the function's first invocation do everything and then be killed before it answers."""
    invoke, left = site.invoke, [1]

    async def cutting(name: str, payload: Any) -> Any:
        answer = await invoke(name, payload)
        if name == function and left[0]:
            left[0] -= 1
            raise TaskError(error, "the function was killed after its work was done")
        return answer

    site.invoke = cutting


def receipts_of(site: SimulatedSite) -> list[str]:
    """Return the keys of all receipts of the single run."""
    prefix = f"{only_run(site).prefix}receipt"
    return [one.key for one in site.objects.page(SETTINGS.run_bucket, prefix).objects]


def launched(site: SimulatedSite) -> int:
    """Return how many machines were ever launched."""
    return len(site.fleets.machines)
