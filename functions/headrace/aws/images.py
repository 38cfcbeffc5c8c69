"""Judges an image by what EC2 tells of it: whether it can boot such machines, and what it is said to carry.

No call can look inside an image. Those that headrace builds are tagged with the fabrics whose kernel modules were
proven when they were built; of a person's own without that tag nothing is known before a machine is configured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.aws.tags import tags_of
from headrace.domain.launch import LaunchRequest

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import ImageTypeDef

FABRIC = "headrace:fabric"
"""Tag of an image: the fabrics that it has modules and tools for, with blanks between, such as `tcp roce`."""
ROOT_DEVICE = "/dev/sda1"
"""The root volume that launch templates size; an image that calls its own otherwise would get a second volume."""


def image_faults(image: ImageTypeDef, arch: str, request: LaunchRequest) -> Iterator[str]:
    """Yield why machines of the request, which have that architecture, cannot work with the image.

    Sources: Amazon EC2 user guide, "Boot modes" (Graviton boots UEFI only) and "Enhanced networking" (what is planned
    runs on Nitro, which has no other network than ENA).
    """
    if image.get("State") != "available":
        yield f"it is {image.get('State', 'unknown')}; build it again, or name another"
        return
    if image.get("Architecture") != arch:
        yield f"it is for {image.get('Architecture')}, the machines are {arch}; name one for {arch}"
    if arch == "arm64" and image.get("BootMode") == "legacy-bios":
        yield "it boots by legacy BIOS, arm64 machines boot by UEFI; register it with BootMode uefi"
    if not image.get("EnaSupport"):
        yield "it is registered without ENA, which the machines need; register it with EnaSupport"
    if image.get("RootDeviceName") != ROOT_DEVICE:
        yield f"its root device is {image.get('RootDeviceName')}, templates size {ROOT_DEVICE}; register it with that"
    stated = stated_fabrics(image)
    if stated is not None and request.fabric not in ("none", *stated):
        yield f"its tag {FABRIC} says {' '.join(stated) or 'nothing'}, the plan needs {request.fabric}"


def image_warning(image: ImageTypeDef, request: LaunchRequest) -> str:
    """Return what is not known of the image that the plan depends on, or nothing."""
    if request.fabric == "none" or stated_fabrics(image) is not None:
        return ""
    return (
        f"has no tag {FABRIC}: whether it has the kernel modules and tools for {request.fabric} shows only when the "
        "machines are configured, which is before anything is staged; tag it once it was seen to work"
    )


def stated_fabrics(image: ImageTypeDef) -> tuple[str, ...] | None:
    """Return the fabrics that the image's tag states, or None without the tag."""
    stated = tags_of(image.get("Tags", ())).get(FABRIC)
    return None if stated is None else tuple(stated.split())
