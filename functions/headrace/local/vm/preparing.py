"""Makes ready what guests of one site start from: the image, kept between runs, with this product's own agent on it."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from pathlib import Path

from headrace.local.vm.agent_layer import AGENT_REQUIREMENTS, agent_layer
from headrace.local.vm.image import Image, build_image
from headrace.local.vm.making import VmUnavailable
from headrace.local.vm.qemu import join_layers

JOB_PACKAGES = ("numpy>=2,<3",)
"""What jobs find besides the agent, as on a machine image for training."""

FOLDER_VARIABLE = "HEADRACE_VM_FOLDER"


def images_folder() -> Path:
    """Return where images are kept: HEADRACE_VM_FOLDER, or the user's cache."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace" / "vm"


class Preparing:
    """Prepares at the first call and answers the same afterwards; several nodes may ask at once."""

    def __init__(self, images: Path, folder: Path, say: Callable[[str], object]) -> None:
        self._images = images
        self._folder = folder
        self._say = say
        self._lock = threading.Lock()
        self._ready: tuple[Image, Path] | None = None

    def __call__(self) -> tuple[Image, Path]:
        """Return the image and the initial files of guests. Raises VmUnavailable."""
        with self._lock:
            if self._ready is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                image = build_image(self._images, self._say)
                layer = agent_layer(image, _agent_folder(), (*AGENT_REQUIREMENTS, *JOB_PACKAGES), self._folder)
                self._ready = image, join_layers((*image.layers, layer), self._folder / "initial-files")
            return self._ready


def _agent_folder() -> Path:
    found = importlib.util.find_spec("headrace_agent")
    if found is None or found.origin is None:
        raise VmUnavailable("the agent is not installed beside headrace; install headrace again, which brings it")
    return Path(found.origin).parent
