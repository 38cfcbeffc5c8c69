"""What goes wrong with machines when they are asked for, listed, told to go, and sent documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.domain.launch import LaunchRequest
from headrace.local.simulated.documents import SimulatedNodes, Undelivered
from headrace.local.simulated.fault_plan import Fault
from headrace.local.simulated.faulty import Effect
from headrace.local.simulated.machines import ZONE, SimulatedFleets
from headrace.local.simulated.port_faults import ServiceFailed
from headrace.ports import CommandStatus, LaunchFault, LaunchResult

Launch = Callable[..., LaunchResult]
FOR_EVER_SECONDS = 10.0**9


def fleet_effects(fleets: SimulatedFleets, nodes: SimulatedNodes) -> dict[str, Effect]:
    """Return the effects that only fleets and documents have."""
    return _launch_effects(fleets) | _listing_effects(fleets) | _document_effects(nodes)


def _launch_effects(fleets: SimulatedFleets) -> dict[str, Effect]:
    def vanishing(_fault: Fault, call: Launch, request: LaunchRequest, **how: Any) -> LaunchResult:
        """Give machines of which the first ends as soon as it was launched."""
        result = call(request, **how)
        for node in result.nodes[:1]:
            fleets.lose(node.node_id, "Server.InternalError at launch", says_goodbye=False)
        return result

    def hidden(fault: Fault, call: Launch, request: LaunchRequest, **how: Any) -> LaunchResult:
        """Give machines that no listing shows for a while."""
        result = call(request, **how)
        fleets.hide([node.node_id for node in result.nodes], fault.seconds)
        return result

    def adrift(fault: Fault, call: Launch, request: LaunchRequest, **how: Any) -> LaunchResult:
        """Launch machines that nobody is told of and that no listing shows for a while."""
        hidden(fault, call, request, **how)
        raise ServiceFailed(f"{fault.where}: InternalError")

    return {
        "vanishing": vanishing,
        "hidden": hidden,
        "adrift": adrift,
        "partial": partial_fleet,
        "quota": quota,
        "no_capacity": no_capacity,
    }


def partial_fleet(fault: Fault, call: Launch, request: LaunchRequest, **how: Any) -> LaunchResult:
    """Give all but `value` of the machines."""
    result = call(request, **how, short=fault.value)
    short = LaunchFault(request.instance_types[0], ZONE, "capacity", "InsufficientInstanceCapacity")
    return replace(result, faults=(*result.faults, short))


def quota(_fault: Fault, _call: Launch, request: LaunchRequest, **_how: Any) -> LaunchResult:
    """Give no machine: a limit of the account is reached."""
    return LaunchResult((), (LaunchFault(request.instance_types[0], ZONE, "quota", "VcpuLimitExceeded"),))


def no_capacity(fault: Fault, call: Launch, request: LaunchRequest, **how: Any) -> LaunchResult:
    """Have no machine of the first `value` types (0 for all), or of a zone, which is all there is here."""
    count = fault.value or len(request.instance_types)
    lacking = [LaunchFault(one, ZONE, "capacity", "InsufficientInstanceCapacity") for one in request.instance_types]
    if count >= len(request.instance_types):
        return LaunchResult((), tuple(lacking))
    return call(request, **how, without=request.instance_types[:count])


def _listing_effects(fleets: SimulatedFleets) -> dict[str, Effect]:
    def terminate_denied(fault: Fault, call: Any, node_ids: Sequence[str]) -> Any:
        """Refuse this call and all that follow for `seconds`, 0 for ever."""
        fleets.deny_terminate(fault.seconds or FOR_EVER_SECONDS)
        return call(node_ids)

    def no_address(fault: Fault, call: Any, run_id: str | None = None) -> Any:
        """List machines without an address, as EC2 does for a while after the launch."""
        fleets.blank_addresses(fault.seconds)
        return call(run_id)

    return {"terminate_denied": terminate_denied, "slow_to_go": slow_to_go, "no_address": no_address}


def slow_to_go(fault: Fault, call: Any, node_ids: Sequence[str]) -> Any:
    """Take the request, and let the machines run on for a while."""
    return call(node_ids, lag_seconds=fault.seconds)


def _document_effects(nodes: SimulatedNodes) -> dict[str, Effect]:
    def unregistered(fault: Fault, call: Any, *args: Any) -> Any:
        """Have no machine registered for a while."""
        nodes.deregister(fault.seconds)
        return call(*args)

    return {
        "unregistered": unregistered,
        "never_ran": never_ran,
        "undeliverable": undeliverable,
        "delivery_timed_out": delivery_timed_out,
        "empty": empty,
        "failed": failed,
    }


def never_ran(_fault: Fault, call: Any, *args: Any) -> Any:
    """Take a command that reaches nobody; its status stays pending for ever."""
    return call(*args, undelivered=Undelivered())


def undeliverable(_fault: Fault, call: Any, *args: Any) -> Any:
    """Take a command that reaches all but the first machine, and say so at once."""
    return call(*args, undelivered=Undelivered(1, "Undeliverable", 0.0))


def delivery_timed_out(fault: Fault, call: Any, *args: Any) -> Any:
    """Take a command that reaches all but the first machine, and say so after a while."""
    return call(*args, undelivered=Undelivered(1, "DeliveryTimedOut", fault.seconds))


def empty(_fault: Fault, _call: Any, *_args: Any) -> CommandStatus:
    """Answer with an empty list, as SSM does at first."""
    return CommandStatus(frozenset(), frozenset(), {})


def failed(_fault: Fault, call: Any, *args: Any) -> CommandStatus:
    """Say that the document failed on one machine."""
    status: CommandStatus = call(*args)
    ids = sorted({*status.pending, *status.succeeded})[:1]
    reasons: Mapping[str, str] = {**status.failed, **dict.fromkeys(ids, "exit code 3: mdadm: no such device")}
    return CommandStatus(status.succeeded - set(ids), status.pending - set(ids), reasons)
