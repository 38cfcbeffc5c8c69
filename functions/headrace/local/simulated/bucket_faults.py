"""What becomes of the objects of a data set while a run goes on: changed, removed, archived."""

from __future__ import annotations

import asyncio

from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.memory import MemoryObjects
from headrace.local.simulated.worlds import machine_world

DATA_BUCKET = "data"


class BucketFaults:
    """Strikes at `bucket`, counted in seconds since `begin`; `value` is which key it is, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, plan: FaultPlan, objects: MemoryObjects, note: Note) -> None:
        self._loop = loop
        self._plan = plan
        self._objects = objects
        self._note = note

    def begin(self) -> None:
        """Plan what will befall the data set; what befalls it at 0 seconds has happened before the run begins."""
        for fault in self._plan.next("bucket"):
            if fault.seconds:
                self._loop.call_later(fault.seconds, self._strike, fault, context=machine_world())
            else:
                self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        self._note("fault", str(fault))
        keys = self._objects.keys(DATA_BUCKET)
        key = keys[min(fault.value, len(keys) - 1)]
        match fault.kind:
            case "changed":
                self._objects.put(DATA_BUCKET, key, self._objects.get(DATA_BUCKET, key)[::-1] + b"and more")
            case "removed":
                self._objects.delete(DATA_BUCKET, key)
            case "archived":
                self._objects.archive(DATA_BUCKET, key)
