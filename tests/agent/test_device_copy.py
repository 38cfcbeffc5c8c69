"""A copy of a device: every byte, none written twice, and none taken for written that cannot be read back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace_agent.commands import main
from headrace_agent.device_copy import BLOCK_BYTES, STREAMS, Copied, copy_device

SIZES = (0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * STREAMS * BLOCK_BYTES + 512)
NO_FLAGS = 0
"""A file has sizes and a cache that no device has."""


def pair(folder: Path, size_bytes: int) -> tuple[str, str]:
    """Write a source of random bytes, and a blank target."""
    source, target = folder / "source", folder / "target"
    source.write_bytes(os.urandom(size_bytes))
    target.write_bytes(bytes(size_bytes))
    return str(source), str(target)


@pytest.mark.parametrize("size_bytes", SIZES)
def test_every_byte_is_copied_and_a_second_time_none_is_written(tmp_path: Path, size_bytes: int) -> None:
    source, target = pair(tmp_path, size_bytes)
    assert copy_device(source, target, NO_FLAGS) == Copied(size_bytes, size_bytes)
    assert Path(target).read_bytes() == Path(source).read_bytes()
    assert copy_device(source, target, NO_FLAGS) == Copied(size_bytes, 0)


def test_after_a_cut_only_what_is_not_there_yet_is_written(tmp_path: Path) -> None:
    source, target = pair(tmp_path, 5 * BLOCK_BYTES)
    copy_device(source, target, NO_FLAGS)
    with Path(target).open("r+b") as file:
        file.seek(3 * BLOCK_BYTES + 7)
        file.write(b"\0" * 9)
    assert copy_device(source, target, NO_FLAGS).written_bytes == BLOCK_BYTES
    assert Path(target).read_bytes() == Path(source).read_bytes()


def test_a_target_that_is_too_small_is_refused_and_a_larger_one_keeps_its_end(tmp_path: Path) -> None:
    source, target = pair(tmp_path, 1000)
    os.truncate(target, 999)
    with pytest.raises(OSError, match=r"target has 999 bytes and .*source 1000"):
        copy_device(source, target, NO_FLAGS)
    Path(target).write_bytes(b"x" * 1003)
    copy_device(source, target, NO_FLAGS)
    assert Path(target).read_bytes() == Path(source).read_bytes() + b"xxx"


def test_a_target_that_holds_other_bytes_than_were_written_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = pair(tmp_path, 2 * BLOCK_BYTES)
    pwritev = os.pwritev

    def loses_a_bit(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        written = pwritev(descriptor, buffers, offset)
        os.pwrite(descriptor, bytes([buffers[0][5] ^ 1]), offset + 5)
        return written

    monkeypatch.setattr(os, "pwritev", loses_a_bit)
    with pytest.raises(OSError, match="others were read back than were written"):
        copy_device(source, target, NO_FLAGS)


def test_an_error_of_one_stream_ends_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = pair(tmp_path, 1000 * STREAMS)
    os.truncate(source, 200 * BLOCK_BYTES)
    os.truncate(target, 200 * BLOCK_BYTES)
    asked: list[int] = []

    def fails(_: int, __: list[memoryview], offset: int) -> int:
        asked.append(offset)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fails)
    with pytest.raises(OSError, match="Input/output error"):
        copy_device(source, target, NO_FLAGS)
    assert len(asked) <= STREAMS


def test_nothing_but_a_slice_of_this_machine_is_ever_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = pair(tmp_path, 10)
    assert main(["copy-device", source, target], {}) == 1
    assert "is no slice of this machine" in capsys.readouterr().err
    assert Path(target).read_bytes() == bytes(10)
    assert main(["copy-device", source, "/dev/mapper/headrace-none"], {}) == 1
    assert "/dev/mapper/headrace-none: " in capsys.readouterr().err
