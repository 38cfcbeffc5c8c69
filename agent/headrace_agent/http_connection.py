"""One kept-alive HTTP/1.1 connection that reads bodies into one buffer, for copying objects at little cost."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 90.0
"""How long the next bytes may take; the whole of a large object may take much longer."""

BUFFER_BYTES = 512 * 1024
HEAD_END = b"\r\n\r\n"
LOOPBACK = ("127.", "::1", "::ffff:127.")
PORTS = {"http": 80, "https": 443}


class BadAnswer(OSError):
    """What came is no answer that can be used; asking again may help."""


class Answer(NamedTuple):
    """The head of an answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]


class Connection:
    """A connection to whichever endpoint was asked last; belongs to one thread.

    Own code, because it decides what a copy costs: 2,000 objects of 100 KiB, MD5 checked, took 0.5 CPU seconds this
    way, 0.8 by `http.client` and 0.8 by obstore's asyncio interface without the check (`make bench` measures the
    whole copy against other tools). It reads answers of a stated length only, as S3 sends objects, and knows no proxy.
    """

    def __init__(self) -> None:
        self.fastest_answer_seconds = math.inf
        self.bodies, self.body_seconds, self.body_bytes = 0, 0.0, 0
        self.is_guarded = False
        """Whether nothing can change the bytes on their way: TLS would notice, or they never leave this machine."""
        self._socket: socket.socket | None = None
        self._place = ("", "")
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = self._end = 0
        self._whole = 0
        self._is_between_answers = False
        self._is_aborted = False

    def get(self, address: SplitResult, headers: Mapping[str, str]) -> Answer:
        """Ask for an address and return the answer's head. Raises OSError.

        A kept-alive connection that the server closed meanwhile is opened anew, once.
        """
        lines = [f"GET {address.path}?{address.query} HTTP/1.1", f"Host: {address.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        request = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
        if self._is_between_answers and self._place == (address.scheme, address.netloc):
            try:
                return self._exchange(request)
            except ConnectionError:
                pass
        self._connect(address)
        return self._exchange(request)

    def body(self, answer: Answer) -> Iterator[memoryview]:
        """Yield the body, each piece valid until the next is asked for. Raises OSError when it ends early.

        An answer whose body is not read to its end costs the connection.
        """
        left = length_of(answer)
        began_at = time.monotonic()
        while left:
            self._fill(min(BUFFER_BYTES, self._begin + left), self._whole)
            piece = self._view[self._begin : min(self._end, self._begin + left)]
            left -= len(piece)
            self._begin += len(piece)
            self.body_bytes += len(piece)
            yield piece
            if self._begin == BUFFER_BYTES:
                self._begin = self._end = 0
        self.bodies, self.body_seconds = self.bodies + 1, self.body_seconds + time.monotonic() - began_at
        self._is_between_answers = self._begin == self._end and answer.headers.get("connection", "") != "close"

    def start_of_body(self, answer: Answer) -> bytes:
        """Return what comes first of the body, for saying what an error was."""
        if self._begin == self._end and answer.headers.get("content-length") != "0":
            with suppress(OSError):
                self._fill(self._end + 1)
        return bytes(self._view[self._begin : self._end])

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._is_between_answers = False

    def abort(self) -> None:
        """End the connection for good, from another thread: the one that waits for bytes from it gets an error.

        Not by SSLSocket's own shutdown: that takes TLS off, and who reads on gets what came encrypted for the body.
        """
        self._is_aborted = True
        waited_for = self._socket
        if waited_for is not None:
            with suppress(OSError):
                socket.socket.shutdown(waited_for, socket.SHUT_RDWR)

    def _connect(self, address: SplitResult) -> None:
        self.close()
        host = address.hostname or ""
        self._check_aborted()
        opened = socket.create_connection((host, address.port or PORTS[address.scheme]), CONNECT_SECONDS)
        self._socket = opened
        self._check_aborted()
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.scheme == "https":
            opened.settimeout(SILENCE_SECONDS)
            wrapped = tls().wrap_socket(opened, server_hostname=host, do_handshake_on_connect=False)
            self._socket, self._whole = wrapped, 0
            self._check_aborted()
            wrapped.do_handshake()
        else:
            _bound_silence(opened)
            self._whole = socket.MSG_WAITALL
        self._place = (address.scheme, address.netloc)
        self.is_guarded = address.scheme == "https" or _peer_of(opened).startswith(LOOPBACK)

    def _check_aborted(self) -> None:
        """Raise ConnectionAbortedError when told to stop, ahead of a wait on a socket that `abort` may have missed."""
        if self._is_aborted:
            self.close()
            raise ConnectionAbortedError("told to stop")

    def _exchange(self, request: bytes) -> Answer:
        if self._socket is None:
            raise ConnectionResetError("the connection was closed")
        self._is_between_answers = False
        self._begin = self._end = 0
        asked_at = time.monotonic()
        self._socket.sendall(request)
        while (head_end := self._buffer.find(HEAD_END, 0, self._end)) < 0:
            self._fill(self._end + 1)
        self.fastest_answer_seconds = min(self.fastest_answer_seconds, time.monotonic() - asked_at)
        self._begin = head_end + len(HEAD_END)
        return _parsed(bytes(self._view[:head_end]))

    def _fill(self, wanted: int, flags: int = 0) -> None:
        """Read until the buffer is filled up to `wanted`; MSG_WAITALL lets the kernel wait, once, for all of it."""
        if wanted > BUFFER_BYTES:
            raise BadAnswer("the head of an answer did not end")
        while self._end < wanted:
            if self._socket is None:
                raise ConnectionResetError("the connection was closed")
            end = wanted if flags else BUFFER_BYTES
            try:
                came = self._socket.recv_into(self._view[self._end : end], 0, flags)
            except BlockingIOError:
                raise TimeoutError(f"no bytes came for {SILENCE_SECONDS:g} seconds") from None
            if not came:
                raise ConnectionResetError("the server closed the connection within an answer")
            self._end += came


def _peer_of(opened: socket.socket) -> str:
    return str(opened.getpeername()[0])


def _bound_silence(opened: socket.socket) -> None:
    """Let no call wait longer than that; the kernel does so without a poll before each read, see socket(7)."""
    opened.settimeout(None)
    limit = struct.pack("@ll", int(SILENCE_SECONDS), int(SILENCE_SECONDS % 1 * 1_000_000))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def length_of(answer: Answer) -> int:
    """Return the bytes of the body; raises BadAnswer when they are not stated."""
    stated = answer.headers.get("content-length", "")
    if not stated.isdecimal():
        raise BadAnswer(f"an answer of status {answer.status} does not state its length")
    return int(stated)


def _parsed(head: bytes) -> Answer:
    status_line, *lines = head.decode("latin-1").split("\r\n")
    protocol, _, rest = status_line.partition(" ")
    if not protocol.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise BadAnswer(f"not an HTTP answer: {status_line[:80]!r}")
    fields = (line.partition(":") for line in lines)
    return Answer(int(rest[:3]), {name.lower(): value.strip() for name, _, value in fields})


@cache
def tls() -> ssl.SSLContext:
    """Return the TLS settings, with the system's certificates."""
    import ssl  # noqa: PLC0415 - a tenth of this agent's start, and not all of it speaks TLS

    return ssl.create_default_context()
