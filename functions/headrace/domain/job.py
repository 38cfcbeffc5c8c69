"""The job description: what a data scientist asks for, strict and complete, with defaults for the rest."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from headrace.domain.access import Access, BucketAccess, bucket_access
from headrace.domain.model import Bytes, Capacity, Model, Slug

FORBIDDEN_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
BUCKET_URL = re.compile(r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$", re.DOTALL)


def _plain_text(text: str) -> str:
    """Refuse text that could hide what it says or be expanded on its way (reliability.md section 7)."""
    if FORBIDDEN_TEXT.search(text):
        raise ValueError("holds a control or bidirectional character; remove it")
    if "{{" in text:
        raise ValueError("holds '{{', which Systems Manager would expand; remove it")
    return text


def _location(text: str) -> str:
    if text.startswith("s3:") and not BUCKET_URL.match(text):
        raise ValueError(f"{text!r} is not an S3 address; write s3://bucket/prefix/ with a valid bucket name")
    if unicodedata.normalize("NFC", text) != text:
        raise ValueError("is not in Unicode form NFC; retype it")
    return text


def _free_name(name: str) -> str:
    if name.startswith("HEADRACE_"):
        raise ValueError("begins with HEADRACE_, which headrace sets itself; choose another name")
    return name


def _below_the_code(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} is not below the job's code; name a file there, such as requirements.txt")
    return path


def _require_address(place: str, given: Access) -> None:
    if given.is_given and not place.startswith("s3://"):
        way = "role" if given.role else "endpoint"
        raise ValueError(f"{place!r} is no bucket, so it has no {way!r}; write s3://bucket/prefix/, or leave it out")


def _results(given: object) -> object:
    """Return the mapping that an address alone stands for."""
    return given if isinstance(given, dict | Access) else {"to": given}


Text = Annotated[str, Field(max_length=4096), AfterValidator(_plain_text)]
Argument = Annotated[str, Field(max_length=32768), AfterValidator(_plain_text)]
Location = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_plain_text), AfterValidator(_location)]
Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), AfterValidator(_free_name)]


class DataInput(Access):
    """One named part of the data set; the name is its folder below `$HEADRACE_DATA` when there are several."""

    source: Location
    name: Slug = "data"
    region: Region | None = None
    staging: Literal["auto", "copy", "lazy"] = "auto"
    verify: Literal["auto", "checksum"] = "auto"
    """How copied bytes are verified, besides size, ETag and version.

    `auto`: TLS authenticates them, else the MD5 is compared where the ETag is one; `checksum`: always the latter too.
    """

    @model_validator(mode="after")
    def _in_one_place(self) -> Self:
        _require_address(self.source, self)
        if self.endpoint and self.region:
            raise ValueError("'region' is where data lie in AWS; with an 'endpoint', write 'signing_region' if it asks")
        return self


class Results(Access):
    """Where results go; most jobs write the address alone."""

    to: Location

    @model_validator(mode="after")
    def _in_one_place(self) -> Self:
        _require_address(self.to, self)
        return self

    @model_serializer(mode="wrap")
    def _short(self, usual: SerializerFunctionWrapHandler) -> Any:
        return usual(self) if self.is_given else self.to


class Environment(Model):
    """What the command finds around it: packages, variables, and secrets by reference."""

    requirements: Annotated[Text, Field(pattern=r"^[A-Za-z0-9_./-]+$"), AfterValidator(_below_the_code)] | None = None
    variables: Annotated[dict[VariableName, Argument], Field(max_length=200)] = {}
    secrets: Annotated[dict[VariableName, Text], Field(max_length=50)] = {}
    image: Text | None = None


class Compute(Model):
    """The machines that train: `count` accelerators of a kind, or `count` machines of a type."""

    accelerator: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")] | None = None
    instance_type: Annotated[str, Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")] | None = None
    count: Annotated[int, Field(ge=1, le=20_000)] = 1
    region: Region | None = None
    """Where all machines are; without it, where the first input says it lies."""
    capacity: Capacity = "on-demand"
    reservation: Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$")] | None = None
    placement: Literal["auto", "cluster"] = "auto"
    """`cluster`: no machines rather than some outside one cluster placement group; `auto` asks for one if it helps."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.accelerator is None) == (self.instance_type is None):
            raise ValueError("needs exactly one of 'accelerator' and 'instance_type'")
        if self.capacity == "capacity-block" and self.reservation is None:
            raise ValueError("a capacity block is used by its 'reservation' id, cr-...; add it")
        if self.capacity == "spot" and self.reservation is not None:
            raise ValueError("a reservation holds machines on demand, not on the spot market; leave one of them out")
        if self.placement == "cluster" and self.reservation is not None:
            raise ValueError("machines in a reservation stand where it is; leave 'placement' out")
        return self


class Checkpoints(Model):
    """Periodic write bursts, of so many bytes or of a model of so many parameters with its Adam state."""

    bytes: Bytes | None = None
    parameters: Annotated[int, Field(gt=0, le=10**15)] | None = None
    period_s: Annotated[float, Field(gt=0, le=10**7)]

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.bytes is None) == (self.parameters is None):
            raise ValueError("needs exactly one of 'bytes' and 'parameters'")
        return self


class Demand(Model):
    """What the loader reads, per accelerator (or per machine when the job names an instance type)."""

    workload: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    read_bytes_per_s: Annotated[int, Field(gt=0, le=10**13)] | None = None
    samples_per_s: Annotated[float, Field(gt=0, le=10**9)] | None = None
    sample_bytes: Annotated[int, Field(gt=0, le=10**13)] | None = None
    request_bytes: Annotated[int, Field(gt=0, le=10**9)] | None = None
    """Useful bytes of one read, where the loader's are not the kernel's read-ahead or a whole small file."""
    read_latency_ms: Annotated[float, Field(gt=0, le=10**6)] | None = None
    """How long one read may take."""
    checkpoints: Checkpoints | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        sampled = self.samples_per_s is not None
        if sampled != (self.sample_bytes is not None):
            raise ValueError("'samples_per_s' and 'sample_bytes' go together")
        if (self.workload is not None) + (self.read_bytes_per_s is not None) + sampled > 1:
            raise ValueError("state the reads one way: 'workload', 'read_bytes_per_s', or samples and their size")
        return self


class JobSpec(Model):
    """One training job, as admitted."""

    name: Slug
    data: Annotated[tuple[DataInput, ...], Field(min_length=1, max_length=32, strict=False)]
    results: Annotated[Results, BeforeValidator(_results)]
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=1024, strict=False)]
    compute: Compute
    code: Location | None = None
    environment: Environment = Environment()
    demand: Demand = Demand()
    duration_hours: Annotated[float, Field(gt=0, le=8000)] = 1.0
    max_hours: Annotated[float, Field(gt=0, le=8500)] | None = None
    storage: Literal["auto", "fleet", "local", "direct"] = "auto"
    storage_nodes: Annotated[int, Field(ge=1, le=4096)] | None = None
    resilience: Literal["none", "mirror"] = "none"
    fabric: Literal["auto", "roce", "tcp"] = "auto"
    team: Slug | None = None
    approved_by: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    """Who allowed a cost that the policy asks to be approved."""
    on_node_loss: Literal["fail", "resume"] = "fail"
    budget_usd: Annotated[float, Field(gt=0, le=10**9)] | None = None
    results_grace_minutes: Annotated[int, Field(ge=1, le=1440)] = 30

    @model_validator(mode="before")
    @classmethod
    def _one_input_is_a_list_of_one(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("data"), dict):
            return {**value, "data": [value["data"]]}
        return value

    @model_validator(mode="after")
    def _names_and_hours(self) -> Self:
        names = [one.name for one in self.data]
        if len(set(names)) < len(names):
            raise ValueError(f"data: the inputs need different names, found {', '.join(names)}")
        self._one_way_to_each_bucket()
        if not self.command[0].strip():
            raise ValueError("command: the first word names the program and is empty")
        if self.max_hours is not None and self.max_hours < self.duration_hours:
            raise ValueError("max_hours is below duration_hours, so the job could never finish; raise it")
        return self

    def _one_way_to_each_bucket(self) -> None:
        places = [(one.source, one) for one in self.data] + [(self.results.to, self.results)]
        ways: dict[str, BucketAccess] = {}
        for one in (bucket_access(*place) for place in places if place[0].startswith("s3://")):
            if ways.setdefault(one.bucket, one) != one:
                raise ValueError(f"the bucket {one.bucket!r} is named twice, with different access; write the same")

    @property
    def accesses(self) -> tuple[BucketAccess, ...]:
        """How each bucket that is not ours is reached; the job's code too, where it lies in one of them."""
        places = [(one.source, one) for one in self.data] + [(self.results.to, self.results)]
        return tuple(dict.fromkeys(bucket_access(*place) for place in places if place[1].is_given))

    def access_to(self, bucket: str) -> BucketAccess | None:
        """Return how the bucket is reached, or None when it is reached as ours are."""
        return next((one for one in self.accesses if one.bucket == bucket), None)

    @property
    def is_from_afar(self) -> bool:
        """Tell whether an input is read from another region than the fleets', or from outside of AWS."""
        return bool(self.other_regions) or any(one.endpoint for one in self.data)

    @property
    def deadline_hours(self) -> float:
        """Hours after which the run is ended whatever it does."""
        return self.max_hours if self.max_hours is not None else 2 * self.duration_hours + 1

    @property
    def other_regions(self) -> tuple[str, ...]:
        """Regions that inputs lie in and the fleets do not, in order of the inputs."""
        return tuple(dict.fromkeys(one.region for one in self.data if one.region and one.region != self.region))

    @property
    def region(self) -> str:
        """The region the fleets run in: the one asked for, or that of the first input that names one."""
        return self.compute.region or next((one.region for one in self.data if one.region), "us-east-1")
