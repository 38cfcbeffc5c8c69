"""A kept-alive connection: what it takes for an answer, and what it does when the server leaves."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import pytest
import trustme

from headrace_agent.http_connection import BUFFER_BYTES, BadAnswer, Connection, length_of, tls

Serve = Callable[[list[bytes | None]], SplitResult]


AUTHORITY = trustme.CA()


@pytest.fixture(scope="module")
def certified() -> ssl.SSLContext:
    """Return the settings of a server that can prove to be 127.0.0.1."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this machine trust the authority, as it trusts those of its distribution."""
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    tls.cache_clear()
    yield
    tls.cache_clear()


@pytest.fixture(params=["http", "https"])
def serve(request: pytest.FixtureRequest, certified: ssl.SSLContext, trusting: None) -> Iterator[Serve]:  # noqa: ARG001
    """Yield what makes a server that sends one script entry per request; None closes the connection."""
    listeners: list[socket.socket] = []
    context = certified if request.param == "https" else None

    def start(script: list[bytes | None]) -> SplitResult:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=play, args=(listener, script, context), daemon=True).start()
        return urlsplit(f"{request.param}://127.0.0.1:{listener.getsockname()[1]}/b/k?signed=1")

    yield start
    for one in listeners:
        one.close()


@pytest.fixture
def connection() -> Iterator[Connection]:
    one = Connection()
    yield one
    one.close()


def play(listener: socket.socket, script: list[bytes | None], context: ssl.SSLContext | None) -> None:
    with suppress(OSError):  # the test is over
        while script:
            accepted = listener.accept()[0]
            with context.wrap_socket(accepted, server_side=True) if context else accepted as client:
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


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_that_is_aborted_while_it_connects_waits_for_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    connect = socket.create_connection

    def aborted_meanwhile(*given: Any) -> socket.socket:
        opened = connect(*given)
        connection.abort()
        return opened

    monkeypatch.setattr(socket, "create_connection", aborted_meanwhile)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ConnectionAbortedError):
        connection.get(urlsplit(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/b/k?signed=1"), {})


def test_one_that_is_aborted_while_tls_is_agreed_on_waits_for_nothing(connection: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def abort_at_the_first_byte() -> None:
            with silent.accept()[0] as there:
                there.recv(1)
                connection.abort()

        threading.Thread(target=abort_at_the_first_byte).start()
        with pytest.raises(OSError, match=r"."):
            connection.get(urlsplit(f"https://127.0.0.1:{silent.getsockname()[1]}/b/k?signed=1"), {})


def test_what_an_error_says_is_read_with_it(serve: Serve, connection: Connection) -> None:
    found = connection.get(serve([b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<Code"]), {})
    assert (found.status, connection.start_of_body(found)[:8]) == (404, b"5\r\n<Code")


def test_nothing_but_the_body_comes_of_one_that_is_aborted_in_its_middle(serve: Serve, connection: Connection) -> None:
    body = bytes(range(256)) * (3 * BUFFER_BYTES // 256)
    pieces = connection.body(connection.get(serve([answer(body)]), {}))
    came = bytes(next(pieces))
    connection.abort()
    with suppress(OSError):
        for piece in pieces:
            came += piece
    assert came == body[: len(came)]


def test_a_server_that_cannot_prove_who_it_is_gets_no_request(
    certified: ssl.SSLContext, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    tls.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=play, args=(listener, [answer(b"1")], certified), daemon=True).start()
        with pytest.raises(OSError, match="certificate verify failed"):
            connection.get(urlsplit(f"https://127.0.0.1:{listener.getsockname()[1]}/b/k?signed=1"), {})
