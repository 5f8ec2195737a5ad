"""Changing the shape of a running shaped file system, over a socket in its own directory.

One JSON object a line: `{"read_latency_ns": 9000000}` changes fields of the shape, `{}` changes
none; the answer is `{"ok": true, "shape": {...}}`, or `{"ok": false, "error": "..."}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from r8.lab.rehearsal.shape import Line, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Far longer than any answer takes: a silent daemon must not hang the lab.
_TIMEOUT_S = 10.0


class Plant:
    """The moving parts of one shaped file system."""

    def __init__(self, shape: Shape) -> None:
        """Lines of the given shape."""
        self.shape = shape
        self.reading = Line(shape.read_bandwidth_bytes_per_s, shape.read_latency_ns)
        self.writing = Line(shape.write_bandwidth_bytes_per_s, 0)

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Change the shape. ValueError, TypeError or KeyError on an order that makes no sense."""
        self.shape = shape = Shape(**(asdict(self.shape) | order))
        self.reading.set(shape.read_bandwidth_bytes_per_s, shape.read_latency_ns)
        self.writing.set(shape.write_bandwidth_bytes_per_s, 0)
        return {"shape": asdict(shape)}


class Control:
    """The other end: one connection an order, so that it can be shared and copied freely."""

    def __init__(self, path: Path) -> None:
        """`path` of the socket."""
        self.path = path

    def set_shape(self, **changes: int | None) -> Shape:
        """Change fields of the shape; returns the whole shape in force."""
        return Shape(**self.order(changes)["shape"])

    def shape(self) -> Shape:
        """The shape in force."""
        return self.set_shape()

    def order(self, order: dict[str, Any]) -> dict[str, Any]:
        """One order, one answer. OSError without an answer, ValueError when it is refused."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_TIMEOUT_S)
            with _short_address(self.path) as address:
                link.connect(address)
            link.sendall((json.dumps(order) + "\n").encode())
            answer: dict[str, Any] = json.loads(link.makefile().readline() or "{}")
        if not answer.get("ok"):
            raise ValueError(answer.get("error", "the shaped file system hung up"))
        return answer


def serve(plant: Plant, path: Path) -> None:
    """Answer orders at `path` from a thread of its own, for as long as the process lives."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short_address(path) as address:
        listener.bind(address)
    listener.listen(8)
    threading.Thread(target=_accept, args=(plant, listener), daemon=True).start()


@contextlib.contextmanager
def _short_address(path: Path) -> Iterator[str]:
    """A socket address holds 107 bytes and a path may be longer: go through the directory."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def _accept(plant: Plant, listener: socket.socket) -> None:
    while True:
        link, _ = listener.accept()
        threading.Thread(target=_converse, args=(plant, link), daemon=True).start()


def _converse(plant: Plant, link: socket.socket) -> None:
    with link, contextlib.suppress(OSError):
        for line in link.makefile():
            try:
                answer = {"ok": True, **plant.obey(json.loads(line))}
            except (ValueError, TypeError, KeyError) as error:
                answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
            link.sendall((json.dumps(answer) + "\n").encode())
