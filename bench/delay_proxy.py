"""A TCP proxy on loopback that delivers every byte later, as a long line would: `python -m bench.delay_proxy`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import cast

WINDOW_BYTES = 16 * 1024 * 1024


class Side(asyncio.Protocol):
    """One side of a proxied connection; what it receives goes to the other side after `delay_seconds`."""

    def __init__(self, delay_seconds: float) -> None:
        self.delay_seconds = delay_seconds
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=WINDOW_BYTES)

    def data_received(self, data: bytes) -> None:
        """Pass the bytes on, later."""
        self._later(lambda other: other.write(data))

    def eof_received(self) -> bool:
        """Pass the end on, later."""
        self._later(lambda other: other.write_eof() if other.can_write_eof() else None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Close the other side, after what is still on its way."""
        self._later(lambda other: other.close())

    def pause_writing(self) -> None:
        """Let the other side read no more while this one cannot write."""
        if self.other and self.other.transport:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Let the other side read again."""
        if self.other and self.other.transport:
            self.other.transport.resume_reading()

    def _later(self, act) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - see the two callers
        def now() -> None:
            if self.other and self.other.transport and not self.other.transport.is_closing():
                act(self.other.transport)

        if self.delay_seconds:
            asyncio.get_running_loop().call_later(self.delay_seconds, now)
        else:
            now()


class Caller(Side):
    """The side that a client opened; the server is reached one round trip later, as a handshake takes."""

    def __init__(self, port: int, delay_seconds: float) -> None:
        super().__init__(delay_seconds)
        self.port = port
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the connection to the server."""
        super().connection_made(transport)
        cast("asyncio.Transport", transport).pause_reading()
        self.task = asyncio.get_running_loop().create_task(self._reach())

    async def _reach(self) -> None:
        await asyncio.sleep(2 * self.delay_seconds)
        _, server = await asyncio.get_running_loop().create_connection(
            lambda: Side(self.delay_seconds), "127.0.0.1", self.port
        )
        self.other, server.other = server, self
        if self.transport:
            self.transport.resume_reading()


async def serve(port: int, delay_seconds: float) -> None:
    """Listen on a free port, print it, and serve for ever."""
    server = await asyncio.get_running_loop().create_server(lambda: Caller(port, delay_seconds), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m bench.delay_proxy", description=__doc__)
    parser.add_argument("port", type=int, help="port of the server on 127.0.0.1")
    parser.add_argument("--round-trip-ms", type=float, default=60.0)
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.round_trip_ms / 2000))


if __name__ == "__main__":
    main()
