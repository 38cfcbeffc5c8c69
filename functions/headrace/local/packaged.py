"""Finding the state machines and documents: inside the installed package, or in the checkout beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

CHECKOUT = {"statemachines": "statemachines", "documents": "agent/documents"}


def packaged(name: Literal["statemachines", "documents"]) -> Path:
    """Return the folder of that name.

    An editable install imports the checkout's own package, which has no such subfolder; a wheel has it
    (model-codebases.md section 3, item 3). Raises FileNotFoundError when neither is there.
    """
    package = Path(str(files("headrace")))
    for folder in (package / name, package.parents[1] / CHECKOUT[name]):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the {name} of headrace are neither in {package} nor beside it; install headrace again")
