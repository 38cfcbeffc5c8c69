"""What goes wrong with any call of any service: refused, lost on the way, done twice, cut short, overtaken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.faulty import Effect

SDK_RETRIES = 4
"""How often the adapters' SDK repeats a throttled call before it gives up (botocore: standard mode, 5 attempts)."""
Call = Callable[..., Any]


class Throttled(Exception):
    """A service answered `slow down` more often than the SDK tries."""


class ServiceFailed(Exception):
    """A service answered with an internal error; whether it did what was asked is not known."""


class Killed(BaseException):
    """The function was ended between two of its calls; nothing in it can catch that."""


class Surroundings(Protocol):
    """What a fault can do beyond its own call."""

    def run_twin(self) -> None:
        """Run the present function once more, from its start, with the same input."""
        ...

    def stop_run(self) -> None:
        """Have a person stop the run that the present function works for."""
        ...

    def overtake(self) -> None:
        """Let another decommission of the run mark, terminate and delete in between."""
        ...

    def delay(self, seconds: float) -> None:
        """Let the present function answer that much later."""
        ...


def generic_effects(around: Surroundings) -> dict[str, Effect]:
    """Return the effects that fit every port."""

    def twin(_fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
        around.run_twin()
        return call(*args, **kwargs)

    def stopped(_fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
        around.stop_run()
        return call(*args, **kwargs)

    def overtaken(_fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
        around.stop_run()
        around.overtake()
        return call(*args, **kwargs)

    def slow(fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
        around.delay(fault.seconds)
        return call(*args, **kwargs)

    changing: dict[str, Effect] = {"twin": twin, "stopped": stopped, "overtaken": overtaken, "slow": slow}
    return changing | {
        "throttled": throttled,
        "error_before": error_before,
        "error_after": error_after,
        "killed_before": killed_before,
        "killed_after": killed_after,
        "sent_twice": sent_twice,
        "denied": denied,
        "gone": gone,
        "stale": unknown,
    }


def throttled(fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
    """Answer `slow down` `value` times; the SDK repeats a bounded number of times."""
    if fault.value > SDK_RETRIES:
        raise Throttled(f"{fault.where}: Rate exceeded")
    return call(*args, **kwargs)


def error_before(fault: Fault, _call: Call, *_args: Any, **_kwargs: Any) -> Any:
    """Fail without having done anything."""
    raise ServiceFailed(f"{fault.where}: InternalError")


def error_after(fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
    """Fail after having done all of it."""
    with suppress(Exception):
        call(*args, **kwargs)
    raise ServiceFailed(f"{fault.where}: InternalError")


def killed_before(_fault: Fault, _call: Call, *_args: Any, **_kwargs: Any) -> Any:
    """End the function just before the side effect."""
    raise Killed


def killed_after(_fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
    """End the function just after the side effect."""
    with suppress(Exception):
        call(*args, **kwargs)
    raise Killed


def sent_twice(_fault: Fault, call: Call, *args: Any, **kwargs: Any) -> Any:
    """Do it twice: the first answer was lost, and the SDK sent the request again."""
    with suppress(Exception):
        call(*args, **kwargs)
    return call(*args, **kwargs)


def denied(fault: Fault, _call: Call, *args: Any, **_kwargs: Any) -> Any:
    """Answer 403."""
    raise AccessDenied(f"{fault.where} of {args[0]!r} answered 403")


def unknown(_fault: Fault, _call: Call, *_args: Any, **_kwargs: Any) -> bool:
    """Say that an execution does not run: DescribeExecution is eventually consistent."""
    return False


def gone(fault: Fault, _call: Call, *args: Any, **_kwargs: Any) -> Any:
    """Answer that an object that was there is not."""
    raise ObjectMissing(f"{fault.where}: s3://{args[0]}/{args[1]} does not exist")
