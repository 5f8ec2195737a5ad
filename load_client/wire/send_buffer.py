"""Large requests of a burst, kept where the kernel can send them without copying them.

Copying 250 KB into a socket takes four times as long as handing over the pages of a memory file,
and the last request of a burst waits for the copies of all before it. The pages are no part of this
process's resident memory; together they are as large as the requests.
"""

from __future__ import annotations

import os

# Below, a copy into the socket costs no more than one into the memory file.
WORTH_BYTES = 1 << 16


class SendBuffer:
    """A memory file, made when the first request is put in; needs memfd_create (Linux)."""

    def __init__(self) -> None:
        """Empty, without a file."""
        self._descriptor: int | None = None
        self._end_bytes = 0

    def put(self, request: bytes) -> int | None:
        """The request's offset; None where it is small or the system has no memory files."""
        if len(request) < WORTH_BYTES:
            return None
        try:
            if self._descriptor is None:
                self._descriptor = os.memfd_create("requests", os.MFD_CLOEXEC)
            begin, view = self._end_bytes, memoryview(request)
            while view:
                taken = os.pwrite(self._descriptor, view, self._end_bytes)
                self._end_bytes, view = self._end_bytes + taken, view[taken:]
        except (AttributeError, OSError):
            return None
        return begin

    def send(self, socket: int, begin: int, size: int) -> int:
        """As `socket.send`, of the `size` bytes at `begin`."""
        if self._descriptor is None:
            raise ValueError("nothing was put in")
        return os.sendfile(socket, self._descriptor, begin, size)

    def empty(self) -> None:
        """Forget everything; what the kernel has not sent yet it keeps."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._end_bytes = None, 0
