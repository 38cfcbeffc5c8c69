"""A TCP proxy on loopback that delivers every byte later, as a long line would: `python -m bench.delay_proxy`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import cast

WINDOW_BYTES = 16 * 1024 * 1024
BACKLOG_SECONDS = 0.05
"""How much a line takes up that cannot be sent yet: what routers keep, not gigabytes."""

TICK_SECONDS = 0.0005


class Line:
    """What all connections share: its delay, one way, and its rate, if it has one. What is sent first arrives first."""

    def __init__(self, delay_seconds: float, bytes_per_s: float | None) -> None:
        self.delay_seconds = delay_seconds
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0
        self._under_way: deque[tuple[float, Callable[[], None]]] = deque()
        self._is_timed = False

    def send(self, arrive: Callable[[], None], size_bytes: int = 0) -> float:
        """Have something arrive later; return for how many seconds it waits before it is sent."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        wait_seconds = self._wait_seconds(size_bytes, now)
        if not self.delay_seconds and not wait_seconds and not self._under_way:
            arrive()
            return 0.0
        self._under_way.append((now + wait_seconds + self.delay_seconds, arrive))
        self._set_timer(loop)
        return wait_seconds

    def _wait_seconds(self, size_bytes: int, now: float) -> float:
        if self._bytes_per_s is None:
            return 0.0
        self._free_at = max(self._free_at, now) + size_bytes / self._bytes_per_s
        return self._free_at - now

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer serves all that is under way: thousands would take the time that is to be measured."""
        if self._under_way and not self._is_timed:
            self._is_timed = True
            loop.call_at(self._under_way[0][0], self._arrive)

    def _arrive(self) -> None:
        """Let all arrive that is due."""
        loop = asyncio.get_running_loop()
        self._is_timed = False
        due = loop.time() + TICK_SECONDS
        while self._under_way and self._under_way[0][0] <= due:
            self._under_way.popleft()[1]()
        self._set_timer(loop)


class Side(asyncio.Protocol):
    """One side of a proxied connection; what it receives goes to the other side over the line."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=WINDOW_BYTES)

    def data_received(self, data: bytes) -> None:
        """Pass the bytes on, later; a line that is full takes no more for a while."""
        wait_seconds = self._later(lambda other: other.write(data), len(data))
        if wait_seconds > BACKLOG_SECONDS and self.transport:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(wait_seconds - BACKLOG_SECONDS / 2, self._read_on)

    def eof_received(self) -> bool:
        """Pass the end on, later."""
        self._later(lambda other: other.write_eof() if other.can_write_eof() else None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Close the other side, after what is still on its way."""
        self._later(lambda other: other.close())

    def _read_on(self) -> None:
        if self.transport and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Let the other side read no more while this one cannot write."""
        if self.other and self.other.transport:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Let the other side read again."""
        if self.other and self.other.transport:
            self.other.transport.resume_reading()

    def _later(self, act: Callable[[asyncio.Transport], None], size_bytes: int = 0) -> float:
        def arrive() -> None:
            if self.other and self.other.transport and not self.other.transport.is_closing():
                act(self.other.transport)

        return self.line.send(arrive, size_bytes)


class Caller(Side):
    """The side that a client opened; the server is reached one round trip later, as a handshake takes."""

    def __init__(self, port: int, line: Line) -> None:
        super().__init__(line)
        self.port = port
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the connection to the server."""
        super().connection_made(transport)
        cast("asyncio.Transport", transport).pause_reading()
        self.task = asyncio.get_running_loop().create_task(self._reach())

    async def _reach(self) -> None:
        await asyncio.sleep(2 * self.line.delay_seconds)
        _, server = await asyncio.get_running_loop().create_connection(lambda: Side(self.line), "127.0.0.1", self.port)
        self.other, server.other = server, self
        if self.transport:
            self.transport.resume_reading()


async def serve(port: int, line: Line) -> None:
    """Listen on a free port, print it, and serve for ever."""
    server = await asyncio.get_running_loop().create_server(lambda: Caller(port, line), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m bench.delay_proxy", description=__doc__)
    parser.add_argument("port", type=int, help="port of the server on 127.0.0.1")
    parser.add_argument("--round-trip-ms", type=float, default=60.0)
    parser.add_argument("--mb-per-s", type=float, help="rate of the line, all connections together; else none")
    given = parser.parse_args()
    rate = given.mb_per_s * 1e6 if given.mb_per_s else None
    asyncio.run(serve(given.port, Line(given.round_trip_ms / 2000, rate)))


if __name__ == "__main__":
    main()
