from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from load_client.clock import Clock
from load_client.stream.deltas import read_delta
from load_client.stream.http_response import parse_response
from load_client.stream.sse import next_event
from load_client.wire.connection import Connection
from load_client.wire.loop import SocketLoop
from load_client.wire.target import Target

from ..support.streams import event, head

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = head("503 Busy", "Content-Length: 4") + b"busy"


def loopback(port: int) -> Target:
    return Target(path="plain", family=socket.AF_INET, address=("127.0.0.1", port))


@contextmanager
def answers_at_once_and_resets() -> Iterator[int]:
    """A fake server that reads nothing: it answers, then breaks the connection."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(BUSY)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                time.sleep(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_an_answer_is_read_even_when_the_request_cannot_be_sent_any_more() -> None:
    with answers_at_once_and_resets() as port:
        loop = SocketLoop(timeout_ns=10**9, clock=Clock())
        connection = Connection("r", b"POST", loopback(port))
        (ready,) = loop.connect_all([connection])
        time.sleep(0.2)  # until the reset is here
        loop.release([ready], time.monotonic_ns())
        while loop.active:
            loop.poll()
        loop.close()
    assert connection.unsendable
    assert connection.sent_done_ns is None
    assert parse_response(connection.received).status == 503


def test_nothing_is_left_open_when_a_wire_is_closed() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        loop = SocketLoop(timeout_ns=10**9, clock=Clock())
        target = loopback(listener.getsockname()[1])
        connections = [Connection(str(i), b"x", target) for i in range(3)]
        loop.connect_all(connections)
        loop.close()
    assert {one.ended for one in connections} == {"interrupted"}
    assert all(one.sock is None for one in connections)


def test_many_connections_stand_before_any_is_used() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        loop = SocketLoop(timeout_ns=10**9, clock=Clock())
        target = loopback(listener.getsockname()[1])
        connections = [Connection(str(i), b"x", target) for i in range(200)]
        assert loop.connect_all(connections) == connections
        assert all(one.connected_ns and one.sent_ns is None for one in connections)
        loop.close()


@pytest.mark.parametrize(
    ("deltas", "kind"),
    [
        ([{"reasoning": "hm"}, {"content": "4"}], "content"),
        ([{"role": "assistant"}, {"reasoning": "hm"}], "reasoning"),
        ([{}, {"role": "assistant"}], "role"),
    ],
)
def test_of_several_choices_the_one_that_says_most_names_the_event(
    deltas: list[dict[str, str]], kind: str
) -> None:
    one = next_event(event({"choices": [{"delta": delta} for delta in deltas]}), 0)
    assert one is not None
    assert read_delta(one, "chat").kind == kind
