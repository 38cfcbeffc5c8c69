"""The Fleets port on EC2: launches with CreateFleet of type instant, terminates in small groups, lists all pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from botocore.exceptions import ClientError

from headrace.aws.batches import Launcher, batches
from headrace.aws.error_codes import code_of, meaning_of, message_of
from headrace.aws.instances import describe, to_node
from headrace.aws.places import Place, grouped, nowhere, places_for, read_offers, require_region
from headrace.aws.reservations import fault_of, read_reservation
from headrace.aws.tags import ATTEMPT, ROLE, RUN, STACK
from headrace.aws.templates import newest, put_into
from headrace.aws.termination import terminate
from headrace.domain.launch import LaunchRequest
from headrace.domain.plan import Placement
from headrace.domain.schedule import Reservation
from headrace.ports import Clock, LaunchFault, LaunchResult, Node

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CreateFleetErrorTypeDef

FINAL = frozenset({"quota", "denied"})
"""What another zone or type cannot help."""


class Answer(NamedTuple):
    """What one call brought: ids with the type of each, and faults."""

    came: tuple[tuple[str, str], ...]
    faults: tuple[LaunchFault, ...]


Call = Callable[[int, int], Answer]
"""Given a batch's number and size."""


class AwsFleets:
    """The Fleets port; `subnets` maps the zones that may be used to one subnet each, the preferred first.

    `groups` maps zones to the stack's cluster placement groups.
    """

    def __init__(
        self,
        client: EC2Client,
        launcher: Launcher,
        subnets: Mapping[str, str],
        clock: Clock,
        groups: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._client = client
        self._launcher = launcher
        self._subnets = subnets
        self._clock = clock
        self._groups = groups

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """Launch the machines in one zone, trying zone after zone until one has room for the first batch.

        Where they should meet in a cluster placement group, the groups of all zones are tried first.

        A batch comes whole or not at all. The faults tell what each zone and type lacked. What the same launch brought
        before is answered again. Raises InfeasibleJob for another region than the stack's, ClientError for what is
        neither a shortage, a quota nor a refusal, such as a client token that was used with other parameters.
        """
        require_region(request.region, self._client.meta.region_name)
        known = self._known(request)
        if len(known) >= request.count:
            return LaunchResult(known, ())
        if request.reservation:
            return self._launch_reserved(request, request.reservation)
        return self._launch_somewhere(request, {(node.zone, node.placement) for node in known})

    def terminate(self, node_ids: Sequence[str]) -> tuple[str, ...]:
        """Ask for the end of each; return the ids accepted, unknown ids left out. Raises AccessDenied, ClientError."""
        return terminate(self._client, node_ids)

    def list_nodes(self, run_id: str | None = None) -> tuple[Node, ...]:
        """Return every machine of the stack, or of one run in it, on all pages, in every state.

        One that does not show its run and role yet is left out; it will with a later call.
        """
        tags = {STACK: self._launcher.stack} | ({RUN: run_id} if run_id else {})
        nodes = (to_node(one) for one in describe(self._client, tags))
        return tuple(node for node in nodes if node is not None)

    def find(self, node_id: str) -> Node | None:
        """Return the machine of that id if it carries the stack's tag and shows its run and role."""
        found = describe(self._client, {STACK: self._launcher.stack}, node_id)
        return next((node for one in found if (node := to_node(one)) is not None), None)

    def _known(self, request: LaunchRequest) -> tuple[Node, ...]:
        tags = {STACK: self._launcher.stack, RUN: request.run_id, ROLE: request.role, ATTEMPT: str(request.attempt)}
        nodes = (to_node(one) for one in describe(self._client, tags))
        return tuple(node for node in nodes if node is not None)

    def _launch_somewhere(self, request: LaunchRequest, begun_in: set[tuple[str, Placement]]) -> LaunchResult:
        offers = read_offers(self._client, self._types(request))
        found = grouped(request, self._places(request, offers), self._groups)
        places = [one for one in found if not begun_in or (one.zone, _placement(one)) in begun_in]
        faults: tuple[LaunchFault, ...] = () if places else nowhere(request, self._subnets, offers)
        for place in places:
            result = self._launch_at(request, place, self._fleet_call(request, place))
            faults += result.faults
            if result.nodes or FINAL & {one.meaning for one in result.faults}:
                return LaunchResult(result.nodes, faults)
        return LaunchResult((), faults)

    def _types(self, request: LaunchRequest) -> Iterable[str]:
        return (*request.instance_types, *(request.beside.instance_types if request.beside else ()))

    def _places(self, request: LaunchRequest, offers: Mapping[str, frozenset[str]]) -> tuple[Place, ...]:
        subnets = self._subnets
        if request.beside and request.beside.reservation:
            zone = read_reservation(self._client, request.beside.reservation).zone
            subnets = {name: subnet for name, subnet in subnets.items() if name == zone}
        return places_for(request, subnets, offers)

    def _launch_reserved(self, request: LaunchRequest, reservation_id: str) -> LaunchResult:
        found = read_reservation(self._client, reservation_id)
        is_allowed = found.zone in self._subnets and found.zone in (request.zones or self._subnets)
        place = Place(found.zone, self._subnets[found.zone], (found.instance_type,)) if is_allowed else None
        fault = fault_of(found, request, place, self._clock.now())
        if place is None or fault is not None:
            return LaunchResult((), (fault,) if fault else ())
        return self._launch_at(request, place, self._reserved_call(request, place, found))

    def _launch_at(self, request: LaunchRequest, place: Place, call: Call) -> LaunchResult:
        """Launch batch after batch in one zone until one does not come."""
        nodes: list[Node] = []
        faults: list[LaunchFault] = []
        for number, size in enumerate(batches(request.count, request.attempt)):
            try:
                answer = call(number, size)
            except ClientError as error:
                answer = Answer((), (_fault(error, place, is_first=not nodes),))
            nodes += [self._node(request, place, *one) for one in answer.came]
            faults += answer.faults
            if len(answer.came) < size:
                break
        return LaunchResult(tuple(nodes), tuple(faults))

    def _fleet_call(self, request: LaunchRequest, place: Place) -> Call:
        def call(number: int, size: int) -> Answer:
            answer = self._client.create_fleet(**self._launcher.fleet_call(request, place, number, size))
            came = (
                (node_id, str(group["InstanceType"]))
                for group in answer.get("Instances", ())
                for node_id in group.get("InstanceIds", ())
            )
            return Answer(tuple(came), tuple(_fleet_fault(one, place) for one in answer.get("Errors", ())))

        return call

    def _reserved_call(self, request: LaunchRequest, place: Place, reservation: Reservation) -> Call:
        template = newest(self._client, self._launcher.template(request.role, reservation.instance_type))

        def call(number: int, size: int) -> Answer:
            arguments = self._launcher.reserved_call(request, place, number, size, reservation)
            came = self._client.run_instances(**put_into(arguments, place.subnet_id, template))["Instances"]
            return Answer(tuple((one["InstanceId"], str(one["InstanceType"])) for one in came), ())

        return call

    def _node(self, request: LaunchRequest, place: Place, node_id: str, instance_type: str) -> Node:
        """Return the machine as the launch call tells of it; listings may not know it for some minutes."""
        return Node(
            node_id=node_id,
            run_id=request.run_id,
            role=request.role,
            instance_type=instance_type,
            zone=place.zone,
            address="",
            life="pending",
            launched_at=self._clock.now(),
            placement=_placement(place),
        )


def _placement(place: Place) -> Placement:
    return "cluster" if place.group else "one zone"


def _fleet_fault(error: CreateFleetErrorTypeDef, place: Place) -> LaunchFault:
    code = error.get("ErrorCode", "")
    overrides = error.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    return LaunchFault(
        str(overrides.get("InstanceType") or ", ".join(place.instance_types)),
        place.zone,
        meaning_of(code),
        f"{code}: {error.get('ErrorMessage', '')}",
    )


def _fault(error: ClientError, place: Place, *, is_first: bool) -> LaunchFault:
    """Return the refusal of a whole call as a fault; raise what has no place in the table while nothing has come."""
    meaning = meaning_of(code_of(error))
    if meaning == "other" and is_first:
        raise error
    return LaunchFault(", ".join(place.instance_types), place.zone, meaning, message_of(error))
