"""The Checks port on AWS: quotas, zones and images as they stand, and policies asked by dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from headrace.aws.batches import Launcher
from headrace.aws.error_codes import code_of, meaning_of, message_of
from headrace.aws.places import Place, grouped, nowhere, places_for, read_offers, require_region
from headrace.aws.reservations import read_reservation
from headrace.aws.templates import newest, put_into
from headrace.aws.usage import read_quotas
from headrace.domain.errors import InfeasibleJob
from headrace.domain.launch import LaunchRequest
from headrace.domain.preflight import Findings
from headrace.domain.schedule import Reservation

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_service_quotas import ServiceQuotasClient


class AwsChecks:
    """The Checks port; it launches nothing and ends nothing."""

    def __init__(
        self,
        ec2: EC2Client,
        quotas: ServiceQuotasClient,
        launcher: Launcher,
        subnets: Mapping[str, str],
        groups: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._ec2 = ec2
        self._quotas = quotas
        self._launcher = launcher
        self._subnets = subnets
        self._groups = groups

    def reservation(self, reservation_id: str) -> Reservation:
        """Return how it stands. Raises InfeasibleJob for one that is not there, or in a zone without subnet."""
        try:
            found = read_reservation(self._ec2, reservation_id)
        except ClientError as error:
            if not code_of(error).startswith("InvalidCapacityReservationId"):
                raise
            region = self._ec2.meta.region_name
            raise InfeasibleJob(
                f"compute.reservation: EC2 has no {reservation_id} in {region} ({message_of(error)}); name one of this "
                "account, or one that is shared with it"
            ) from error
        if found.zone not in self._subnets:
            usable = ", ".join(self._subnets)
            raise InfeasibleJob(
                f"compute.reservation: {reservation_id} is in {found.zone}, this stack has subnets in {usable}; add "
                "one there, or name a reservation in these"
            )
        return found

    def look(self, requests: Sequence[LaunchRequest], quota_codes: Sequence[str]) -> Findings:
        """Return how the quotas stand, types that no usable zone offers, and images that cannot be launched.

        Raises InfeasibleJob for a job whose machines belong into another region.
        """
        for request in requests:
            require_region(request.region, self._ec2.meta.region_name)
        faults = [
            fault for request in requests for fault in (*self._zone_faults(request), *self._image_faults(request))
        ]
        return Findings(read_quotas(self._quotas, self._ec2, quota_codes), tuple(dict.fromkeys(faults)))

    def try_launches(self, requests: Sequence[LaunchRequest]) -> tuple[str, ...]:
        """Ask for each launch by dry runs of both calls that it takes. Return what policies refuse.

        What a dry run says besides is not judged: the launch itself will say it, with more to go by.
        """
        refusals = [refusal for request in requests for refusal in self._launch_refusals(request)]
        return tuple(dict.fromkeys(refusals))

    def try_terminate(self, node_ids: Sequence[str]) -> str | None:
        """Ask for the end of machines by a dry run; one that EC2 does not know yet is no refusal."""
        return _refused(lambda: self._ec2.terminate_instances(InstanceIds=list(node_ids[:1]), DryRun=True))

    def _places(self, request: LaunchRequest) -> tuple[tuple[Place, ...], Mapping[str, frozenset[str]]]:
        beside = request.beside.instance_types if request.beside else ()
        offers = read_offers(self._ec2, (*request.instance_types, *beside))
        return places_for(request, self._subnets, offers), offers

    def _zone_faults(self, request: LaunchRequest) -> Iterator[str]:
        places, offers = self._places(request)
        if not places:
            yield from (f"{one.instance_type} is {one.message}" for one in nowhere(request, self._subnets, offers))

    def _image_faults(self, request: LaunchRequest) -> Iterator[str]:
        for name in {self._launcher.template(request.role, one): None for one in request.instance_types}:
            try:
                image_id = newest(self._ec2, name).get("ImageId", "")
                images = self._ec2.describe_images(ImageIds=[image_id])["Images"]
            except ClientError as error:
                yield f"launch template {name}: {message_of(error)}; deploy the stack again, or name another image"
                continue
            state = images[0].get("State", "unknown") if images else "not there"
            if state != "available":
                yield f"launch template {name}: image {image_id} is {state}; build it again, or name another"

    def _launch_refusals(self, request: LaunchRequest) -> Iterator[str]:
        places, _ = self._places(request)
        for place in grouped(request, places, self._groups)[:1]:
            for refusal in (self._try_fleet(request, place), self._try_run(request, place)):
                if refusal:
                    yield f"{request.role} machines: {refusal}"

    def _try_fleet(self, request: LaunchRequest, place: Place) -> str | None:
        call = self._launcher.fleet_call(request, place, 0, 1)
        call["DryRun"] = True
        return _refused(lambda: self._ec2.create_fleet(**call))

    def _try_run(self, request: LaunchRequest, place: Place) -> str | None:
        def try_it() -> None:
            template = newest(self._ec2, self._launcher.template(request.role, place.instance_types[0]))
            call = put_into(self._launcher.plain_call(request, place, 1), place.subnet_id, template)
            call["DryRun"] = True
            self._ec2.run_instances(**call)

        return _refused(try_it)


def _refused(call: Callable[[], object]) -> str | None:
    """Return which action a policy refuses, and why; a dry run that would have succeeded is an error, too."""
    try:
        call()
    except ClientError as error:
        return f"ec2:{error.operation_name}: {message_of(error)}" if meaning_of(code_of(error)) == "denied" else None
    return None
