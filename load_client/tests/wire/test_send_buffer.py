from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from load_client.wire.connection import Connection
from load_client.wire.send_buffer import WORTH_BYTES, SendBuffer
from load_client.wire.target import Target

from ..support.runs import good, plan, rows, run
from ..support.scripted_server import scripted

if TYPE_CHECKING:
    from pathlib import Path

LARGE = WORTH_BYTES // 4  # tokens: every one takes five bytes


def test_what_is_buffered_arrives_to_the_byte() -> None:
    send_buffer = SendBuffer()
    requests = [bytes([number]) * (WORTH_BYTES + number) for number in range(3)]
    places = [send_buffer.put(request) for request in requests]
    for place, request in zip(places, requests, strict=True):
        assert place is not None
        here, there = socket.socketpair()
        with here, there:
            sent = received = b""
            while len(sent) < len(request):
                size = send_buffer.send(here.fileno(), place + len(sent), len(request) - len(sent))
                sent += bytes(size)
                received += there.recv(size, socket.MSG_WAITALL)
        assert received == request
    send_buffer.empty()


def test_small_requests_and_systems_without_memory_files_send_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert SendBuffer().put(b"x" * (WORTH_BYTES - 1)) is None

    def refuse(_name: str, _flags: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", refuse)
    assert SendBuffer().put(b"x" * WORTH_BYTES) is None


def test_nothing_is_sent_from_an_empty_send_buffer() -> None:
    with pytest.raises(ValueError, match="nothing was put in"):
        SendBuffer().send(0, 0, 1)


@pytest.mark.parametrize("connect", ["before", "inside"])
def test_a_burst_of_large_requests_arrives_whole(tmp_path: Path, connect: str) -> None:
    with scripted(good) as server:
        summary, said = run(plan(server.url, prompt_tokens=LARGE, connect=connect), tmp_path)
        bodies = list(server.requests)
    assert summary.all_ok, said
    found = rows(tmp_path / "requests.jsonl")
    assert {row["request_bytes"] for row in found} == set(map(len, bodies))
    assert all(row["request_bytes"] >= WORTH_BYTES for row in found)
    assert all(row["sent_ns"] <= row["sent_done_ns"] for row in found)


def test_a_request_not_sent_yet_keeps_its_size() -> None:
    target = Target(path="plain", family=socket.AF_INET, address=("127.0.0.1", 1))
    one = Connection("r", b"x" * 10, target)
    one.payload = b""  # as when it was put into a send buffer
    assert (one.request_bytes, one.unsent_bytes) == (10, 10)
