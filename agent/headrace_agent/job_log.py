"""Keeps a job's output in bounded space: the head and the tail, any bytes, lines of any length."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import BinaryIO

NOTE_BYTES = 128
RECENT_BYTES = 16 * 1024
BYTES_MIN = 4 * 1024


class JobLog:
    """A log of at most `bytes_max`: its first half is kept, then the newest of what follows, in two rotating files.

    Safe to write from several threads. `path` always holds the head; `compose` makes one file of all that is kept.
    With `goes_on`, what an earlier log left in `path` comes first.
    """

    def __init__(self, path: Path, bytes_max: int, *, goes_on: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        earlier = path.read_bytes() if goes_on and path.exists() else b""
        room = max(bytes_max, BYTES_MIN) - NOTE_BYTES
        self.path = path
        self.total_bytes = 0
        self._head_bytes = room // 2
        self._segment_bytes = room // 4
        self._segments = [path.with_suffix(".tail-0"), path.with_suffix(".tail-1")]
        for stale in self._segments:
            stale.unlink(missing_ok=True)
        self._lock = threading.Lock()
        self._recent = b""
        self._writing: BinaryIO = path.open("wb", buffering=0)
        self._room = self._head_bytes
        self._rotations = 0
        self.write(earlier)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with self._lock:
            self.total_bytes += len(data)
            self._recent = (self._recent + data)[-RECENT_BYTES:]
            while data:
                if self._room == 0:
                    self._rotate()
                piece, data = data[: self._room], data[self._room :]
                self._writing.write(piece)
                self._room -= len(piece)

    def note(self, text: str) -> None:
        """Append a line of the agent's own."""
        self.write(f"[headrace] {text}\n".encode("utf-8", "replace"))

    def tail(self) -> str:
        """Return the newest output as text, a few KiB."""
        with self._lock:
            return self._recent.decode("utf-8", "replace")

    def compose(self, target: Path) -> int:
        """Write all that is kept into `target`. Return the total of bytes that this covers."""
        with self._lock, target.open("wb") as whole:
            kept = self._append_to(whole, self.path, 0)
            tails = [one for one in self._in_order() if one.exists()]
            left_out = self.total_bytes - kept - sum(one.stat().st_size for one in tails)
            if left_out:
                whole.write(f"\n[headrace] {left_out} bytes of output left out here\n".encode())
            for one in tails:
                self._append_to(whole, one, kept)
            return self.total_bytes

    def close(self) -> None:
        """Close the file, and make `path` hold all that is kept."""
        whole = self.path.with_suffix(".whole")
        self.compose(whole)
        with self._lock:
            self._writing.close()
            whole.replace(self.path)
            for one in self._segments:
                one.unlink(missing_ok=True)

    def _in_order(self) -> list[Path]:
        newest = self._rotations % 2
        return [self._segments[1 - newest], self._segments[newest]]

    def _rotate(self) -> None:
        self._writing.close()
        self._rotations += 1
        self._writing = self._segments[self._rotations % 2].open("wb", buffering=0)
        self._room = self._segment_bytes

    @staticmethod
    def _append_to(whole: BinaryIO, part: Path, kept: int) -> int:
        with part.open("rb") as stream:
            shutil.copyfileobj(stream, whole)
            return kept + stream.tell()
