"""The ways to a server: TLS, proxies, IPv6, several instances, and the key that is never stored."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from load_client.calibration.certificate import make_certificate
from load_client.errors import ClientError, LinkError
from load_client.record.capture import Reads, redacted
from load_client.record.raw_stream import decode_batches
from load_client.wire.link import Link

from ..support.runs import GOOD, good, plan, rows, run
from ..support.scripted_server import Step, scripted
from ..support.streams import head

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A server's context, and the file a client must trust."""
    try:
        served, trusted = make_certificate(tmp_path_factory.mktemp("tls"))
    except ClientError as missing:
        pytest.skip(str(missing))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served)
    return context, str(trusted)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def proxy(answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> Iterator[list[str]]:
    """A fake proxy; gives its URL, then the first line of every request it was sent."""
    told: list[str] = []
    threads: list[threading.Thread] = []

    def serve(sock: socket.socket) -> None:
        with sock:
            request = b""
            while b"\r\n\r\n" not in request and (data := sock.recv(1 << 16)):
                request += data
            if not request:
                return
            line = request.split(b"\r\n")[0].decode()
            told.append(line)
            verb, address, _ = line.split(" ")
            host = address.removeprefix("http://").split("/")[0]
            name, _, port = host.rpartition(":")
            with socket.create_connection((name, int(port)), 5) as server:
                if verb == "CONNECT":
                    sock.sendall(answer)
                else:
                    server.sendall(request)
                up = threading.Thread(target=_pump, args=(sock, server), daemon=True)
                up.start()
                _pump(server, sock)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
                    threads[-1].start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        told.append(f"http://127.0.0.1:{listener.getsockname()[1]}")
        yield told
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_tls_keeps_kernel_stamps_and_says_so(
    tmp_path: Path, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, trusted = certificate
    with scripted(good, gather=4, context=context) as server:
        summary, said = run(plan(server.url, ca_file=trusted), tmp_path)
    assert summary.all_ok, said
    for row in rows(tmp_path / "requests.jsonl"):
        assert (row["stamp"], row["output_text"]) == ("kernel-tls", "abc")
        assert row["connected_ns"] <= row["sent_ns"] < row["first_content_ns"]
        # What was asked for, not what encryption made of it.
        assert row["request_bytes"] == len(server.requests[0])


def test_a_large_request_and_answer_pass_through_tls_whole(
    tmp_path: Path, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, trusted = certificate
    with scripted(good, context=context) as server:
        big = plan(server.url, ca_file=trusted, prompt_tokens=200_000, sessions=[0], concurrency=1)
        summary, said = run(big, tmp_path)
    assert summary.all_ok, said
    assert len(server.bodies()[0]["prompt"]) == 200_000


def test_a_request_right_behind_the_handshake_is_left_for_its_own_read(
    certificate: tuple[ssl.SSLContext, str],
) -> None:
    """A server that is starved finds both at once."""
    context, trusted = certificate
    here, there = socket.socketpair()
    client = Link(context=ssl.create_default_context(cafile=trusted), hostname="127.0.0.1")
    server = Link(context=context)
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        assert not client.step(here)
        assert not server.step(there)
        assert client.step(here)
        here.send(client.seal(b"POST"))
        assert server.step(there)
        assert server.open(there.recv(1), there) == b""
        assert server.open(there.recv(1 << 16), there) == b"POST"


def test_a_peer_that_leaves_inside_a_record_ends_the_handshake(
    certificate: tuple[ssl.SSLContext, str],
) -> None:
    for said in (b"\x16\x03", b"\x16\x03\x01\x02\x00\x01"):
        here, there = socket.socketpair()
        with there:
            there.setblocking(False)
            here.send(said)
            here.close()
            with pytest.raises(LinkError, match="closed during the handshake"):
                Link(context=certificate[0]).step(there)


def test_a_server_that_is_not_trusted_gets_no_request(
    tmp_path: Path, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, _ = certificate
    with scripted(good, context=context) as server:
        run(plan(server.url), tmp_path)
        assert not server.requests
    for row in rows(tmp_path / "requests.jsonl"):
        assert row["outcome"] == "connect_error"
        assert "TLS: " in row["error"]
        assert "self-signed" in row["error"] or "self signed" in row["error"]


def test_a_proxy_is_told_the_whole_address(tmp_path: Path) -> None:
    with scripted(good) as server, proxy() as told:
        summary, said = run(plan(server.url, proxy=told[0]), tmp_path)
        assert summary.all_ok, said
        assert f"POST {server.url}/v1/completions HTTP/1.1" in told
    assert {row["stamp"] for row in rows(tmp_path / "requests.jsonl")} == {"kernel-proxy"}


def test_tls_goes_through_a_proxys_tunnel(
    tmp_path: Path, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, trusted = certificate
    with scripted(good, context=context) as server, proxy() as told:
        summary, said = run(plan(server.url, proxy=told[0], ca_file=trusted), tmp_path)
        assert summary.all_ok, said
        assert f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1" in told
    assert {row["stamp"] for row in rows(tmp_path / "requests.jsonl")} == {"kernel-proxy-tls"}


def test_a_refused_tunnel_is_a_row_with_the_proxys_own_words(
    tmp_path: Path, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, trusted = certificate
    refusal = b"HTTP/1.1 407 Who are you\r\n\r\n"
    with scripted(good, context=context) as server, proxy(refusal) as told:
        run(plan(server.url, proxy=told[0], ca_file=trusted), tmp_path)
    (reason,) = {row["error"] for row in rows(tmp_path / "requests.jsonl")}
    assert reason == "the proxy refused the tunnel: HTTP/1.1 407 Who are you"


def test_an_ipv6_server_is_reached_and_named_in_brackets(tmp_path: Path) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError as missing:
        pytest.skip(f"no IPv6 loopback: {missing}")
    with scripted(good, host="::1") as server:
        summary, said = run(plan(server.url), tmp_path)
        assert f"Host: {server.url.removeprefix('http://')}\r\n".encode() in server.requests[0]
        assert "[::1]" in server.url
    assert summary.all_ok, said


def test_several_instances_take_sessions_in_turn(tmp_path: Path) -> None:
    with scripted(good, gather=2) as one, scripted(good, gather=2) as other:
        summary, _ = run(plan(one.url, more_instances={"e1": other.url}), tmp_path)
    assert summary.all_ok
    assert (len(one.requests), len(other.requests)) == (2, 2)
    found = {row["session"]: row["instance"] for row in rows(tmp_path / "requests.jsonl")}
    assert found == {0: "e0", 1: "e1", 2: "e0", 3: "e1"}
    released = {row["scheduled_ns"] for row in rows(tmp_path / "requests.jsonl")}
    assert len(released) == 1


def test_a_key_from_a_file_is_sent_and_stored_nowhere_even_when_the_server_repeats_it(
    tmp_path: Path,
) -> None:
    key = "sk-very-secret"
    (tmp_path / "key").write_text(f"{key}\n")
    (tmp_path / "key").chmod(0o600)
    out = tmp_path / "out"
    out.mkdir()
    body = f"bad key {key}!".encode()

    def repeat(_body: dict[str, Any], _number: int) -> list[Step]:
        answer = head("401 No", f"Content-Length: {len(body)}") + body
        return [answer[:-6], 0.05, answer[-6:]]

    with scripted(repeat) as server:
        run(plan(server.url, api_key_file=str(tmp_path / "key")), out)
        assert f"Authorization: Bearer {key}\r\n".encode() in server.requests[0]
    assert "bad key **************!" in rows(out / "requests.jsonl")[0]["error"]
    kept = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert key.encode() not in kept
    (raw,) = (out / "raw").glob("client-*")
    for _, captures in decode_batches(raw):
        for capture in captures:
            assert key.encode() not in b"".join(capture.reads.data)


def test_a_key_is_blotted_out_across_reads_and_sizes_stay() -> None:
    reads = Reads([1, 2, 3], [None] * 3, [b"x se", b"cr", b"et y"])
    assert redacted(reads, "secret") == Reads([1, 2, 3], [None] * 3, [b"x **", b"**", b"** y"])
    assert redacted(reads, None) is reads
    assert redacted(reads, "other") is reads


def test_connecting_inside_the_burst_shows_what_connecting_costs(tmp_path: Path) -> None:
    with scripted(lambda _b, _n: [0.05, GOOD], gather=4) as server:
        summary, said = run(plan(server.url, connect="inside"), tmp_path)
    assert summary.all_ok, said
    found = rows(tmp_path / "requests.jsonl")
    assert len({row["scheduled_ns"] for row in found}) == 1
    for row in found:
        assert row["scheduled_ns"] < row["connected_ns"] <= row["sent_ns"]
