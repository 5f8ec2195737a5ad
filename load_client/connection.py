"""One request on its way: its bytes, its socket, and the instants and reads it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .capture import Reads, kernel_walls_ns

if TYPE_CHECKING:
    import socket

    from .link import Link
    from .target import Target

_HEAD_BYTES = 4096
_DONE_ENDING = b"data: [DONE]\n\n\r\n0\r\n\r\n"


@dataclass(slots=True, eq=False)
class Connection:
    """One request on its way. Instants are monotonic; None until they come."""

    request_id: str
    payload: bytes  # b"" once it is sent or lies in an outbox
    target: Target
    request_bytes: int = field(init=False)
    wire_bytes: int = field(init=False)  # more where it is encrypted
    laid_at: int | None = None  # its place in the wire's outbox
    eager: bool = False  # send as soon as the connection stands
    link: Link | None = None
    sock: socket.socket | None = None
    opened_ns: int | None = None
    scheduled_ns: int | None = None
    connected_ns: int | None = None
    sent_ns: int | None = None
    sent_done_ns: int | None = None
    sent_bytes: int = 0
    unsendable: bool = False  # the server stopped listening; its answer may still come
    # One read's data, user instant and kernel stamp (zeros without one) stand at the same place.
    data: list[bytes] = field(default_factory=list)
    user_ns: list[int] = field(default_factory=list)
    timespecs: bytearray = field(default_factory=bytearray)
    looked_at_bytes: int = 0
    ended: str | None = None
    ended_ns: int | None = None
    ended_detail: str | None = None

    def live_socket(self) -> socket.socket:
        """The open socket; ValueError without one."""
        if self.sock is None:
            raise ValueError(f"{self.request_id} has no socket")
        return self.sock

    @property
    def unsent_bytes(self) -> int:
        """What the kernel has not taken yet."""
        return self.wire_bytes - self.sent_bytes

    def __post_init__(self) -> None:
        """Remember the size: encryption changes it, and sending forgets the bytes."""
        self.request_bytes = self.wire_bytes = len(self.payload)

    def says_done(self) -> bool:
        """Its last bytes are those of a chunked event stream that ended as it should.

        No event can hold them: data of an event has no line ends.
        """
        if self.data[-1][-5:] != _DONE_ENDING[-5:]:
            return False
        tail = b"".join(self.data[-4:])[-len(_DONE_ENDING) :]
        return tail == _DONE_ENDING and b"chunked" in self.data[0][:_HEAD_BYTES].lower()

    def may_be_complete(self) -> bool:
        """A cheap look before the whole response is parsed.

        Every chunked body ends with an empty line; a body of another framing must be looked at.
        """
        tail = b"".join(self.data[-4:])[-4:]
        if tail == b"\r\n\r\n" or not self.data:
            return True
        return b"chunked" not in self.data[0][:_HEAD_BYTES].lower()

    @property
    def received(self) -> bytes:
        """All response bytes so far."""
        return b"".join(self.data)

    def reads(self) -> Reads:
        """The receives with their stamps decoded; called when the burst is over."""
        return Reads(self.user_ns, kernel_walls_ns(self.timespecs), self.data)
