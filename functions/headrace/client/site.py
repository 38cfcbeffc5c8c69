"""What the client needs of the place where a run happens, and how such a place is opened on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from headrace.ports import Cloud


class Site(Protocol):
    """One machine with everything that a run needs; it lives as long as its `with` block."""

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

    def recover(self, run_id: str) -> None:
        """Release everything of a run whose driving process died, and report the run as failed."""
        ...


OpenSite = Callable[[Path, tuple[str, ...]], AbstractContextManager[Site]]
