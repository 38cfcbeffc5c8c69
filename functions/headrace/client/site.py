"""What the client needs of the place where a run happens, and how such a place is opened on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from headrace.ports import Cloud


class Site(Protocol):
    """One machine with everything that a run needs; it lives as long as its `with` block.

    Folders may be served before the block is entered, which is faster.
    """

    def __enter__(self) -> Self:
        """Start everything."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started, and everything that serves it."""
        ...

    @property
    def cloud(self) -> Cloud:
        """The ports of this machine."""
        ...

    def serve_folder(self, bucket: str, folder: Path, *, writable: bool) -> None:
        """Make the folder a bucket for as long as the site lives."""
        ...

    def start_run(self, given: Mapping[str, Any], name: str) -> str:
        """Start an execution of `training_run` and return its ARN."""
        ...

    def stop_run(self, run_id: str, by: str) -> None:
        """Ask for the end of a run; doing so twice is the same as once."""
        ...

    def is_over(self, execution_arn: str) -> bool:
        """Tell whether the execution and all that it left to do have ended."""
        ...

    def failure_of(self, execution_arn: str) -> str | None:
        """Return `error: cause` of an execution that ended badly, or None."""
        ...

    def recover(self, run_id: str) -> None:
        """Release everything of a run whose driving process died, and report the run as failed."""
        ...


OpenSite = Callable[[Path, tuple[str, ...]], Site]
