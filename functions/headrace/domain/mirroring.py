"""Whether readers can go on without some of the storage nodes, since all that these hold lies on others as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headrace.domain.plan import VolumePlan


def can_do_without(volumes: Iterable[VolumePlan], lost: Collection[int]) -> bool:
    """Tell whether a node that is not lost holds each part of each volume; `lost` are places of the storage fleet."""
    return all(_is_held(volume, lost) for volume in volumes if volume.held_by == "storage")


def _is_held(volume: VolumePlan, lost: Collection[int]) -> bool:
    mirrors = dict(zip(volume.member_node_indexes, volume.mirror_node_indexes, strict=False))
    return all(member not in lost or mirrors.get(member, member) not in lost for member in volume.member_node_indexes)
