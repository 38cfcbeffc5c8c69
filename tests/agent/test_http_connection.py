"""A kept-alive connection: what it takes for an answer, and what it does when the server leaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

import pytest

from headrace_agent.http_connection import BUFFER_BYTES, BadAnswer, Connection, length_of

Serve = Callable[[list[bytes | None]], SplitResult]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Yield what makes a server that sends one script entry per request; None closes the connection."""
    listeners: list[socket.socket] = []

    def start(script: list[bytes | None]) -> SplitResult:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=play, args=(listener, script), daemon=True).start()
        return urlsplit(f"http://127.0.0.1:{listener.getsockname()[1]}/b/k?signed=1")

    yield start
    for one in listeners:
        one.close()


@pytest.fixture
def connection() -> Iterator[Connection]:
    one = Connection()
    yield one
    one.close()


def play(listener: socket.socket, script: list[bytes | None]) -> None:
    with suppress(OSError):  # the test is over
        while script:
            with listener.accept()[0] as client:
                while script and client.recv(65536):
                    said = script.pop(0)
                    if said is None:
                        break
                    client.sendall(said)


def answer(body: bytes, head: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def read(connection: Connection, address: SplitResult) -> bytes:
    found = connection.get(address, {})
    return b"".join(bytes(piece) for piece in connection.body(found))


def test_bodies_of_all_sizes_come_whole_over_one_connection(serve: Serve, connection: Connection) -> None:
    bodies = [b"", b"x", bytes(range(256)) * 1024, b"y" * (3 * BUFFER_BYTES + 7)]
    address = serve([answer(body) for body in bodies])
    assert [read(connection, address) for _ in bodies] == bodies


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew(serve: Serve, connection: Connection) -> None:
    address = serve([answer(b"1"), None, answer(b"2")])
    assert [read(connection, address), read(connection, address)] == [b"1", b"2"]


def test_a_server_that_wants_to_close_is_asked_over_another_connection(serve: Serve, connection: Connection) -> None:
    address = serve([answer(b"1", "Connection: close\r\n"), answer(b"2")])
    assert read(connection, address) == b"1"
    connection_before = connection._socket
    connection.get(address, {})
    assert connection._socket is not connection_before


def test_a_body_that_ends_early_is_an_error(serve: Serve, connection: Connection) -> None:
    address = serve([b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", None])
    found = connection.get(address, {})
    threading.Thread(target=connection.abort).start()
    with pytest.raises(ConnectionResetError, match="within an answer"):
        list(connection.body(found))


def test_an_answer_without_a_length_is_not_used(serve: Serve, connection: Connection) -> None:
    found = connection.get(serve([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]), {})
    with pytest.raises(BadAnswer, match="an answer of status 200 does not state its length"):
        length_of(found)


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_not_http_is_an_error(serve: Serve, connection: Connection, said: bytes) -> None:
    with pytest.raises(BadAnswer, match="not an HTTP answer"):
        connection.get(serve([said]), {})


def test_a_head_without_an_end_fills_no_memory(serve: Serve, connection: Connection) -> None:
    with pytest.raises(BadAnswer, match="the head of an answer did not end"):
        connection.get(serve([b"HTTP/1.1 200 OK\r\n" + b"a" * BUFFER_BYTES]), {})


def test_an_aborted_connection_opens_no_other(serve: Serve, connection: Connection) -> None:
    connection.abort()
    with pytest.raises(ConnectionAbortedError):
        connection.get(serve([answer(b"1")]), {})


def test_what_an_error_says_is_read_with_it(serve: Serve, connection: Connection) -> None:
    found = connection.get(serve([b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<Code"]), {})
    assert (found.status, connection.start_of_body(found)[:8]) == (404, b"5\r\n<Code")
