"""One request under way: its bytes, its socket, and the instants and reads it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..record.capture import Reads, kernel_walls_ns

if TYPE_CHECKING:
    import socket

    from .link import Link
    from .target import Target

_HEAD_BYTES = 4096
_DONE_ENDING = b"data: [DONE]\n\n\r\n0\r\n\r\n"


@dataclass(slots=True, eq=False)
class Connection:
    """One request under way. Instants are monotonic; None until they come."""

    request_id: str
    payload: bytes  # b"" once it is sent or lies in a send buffer
    target: Target
    request_bytes: int = field(init=False)
    wire_bytes: int = field(init=False)  # more where it is encrypted
    buffered_at: int | None = None  # its offset in the loop's send buffer
    eager: bool = False  # send as soon as it is connected
    link: Link | None = None
    sock: socket.socket | None = None
    opened_ns: int | None = None
    scheduled_ns: int | None = None
    connected_ns: int | None = None
    sent_ns: int | None = None
    sent_done_ns: int | None = None
    sent_bytes: int = 0
    unsendable: bool = False  # the server stopped receiving; its answer may still come
    # One read's data, user instant and kernel stamp (zeros without one) stand at the same place.
    data: list[bytes] = field(default_factory=list)
    user_ns: list[int] = field(default_factory=list)
    timespecs: bytearray = field(default_factory=bytearray)
    parsed_bytes: int = 0  # how long the response was when it was last found incomplete
    ended: str | None = None
    ended_ns: int | None = None
    ended_detail: str | None = None

    def __post_init__(self) -> None:
        """Remember the size: encryption changes it, and sending forgets the bytes."""
        self.request_bytes = self.wire_bytes = len(self.payload)

    def live_socket(self) -> socket.socket:
        """The open socket; ValueError without one."""
        if self.sock is None:
            raise ValueError(f"{self.request_id} has no socket")
        return self.sock

    @property
    def unsent_bytes(self) -> int:
        """What the kernel has not taken yet."""
        return self.wire_bytes - self.sent_bytes

    def ends_with_done(self) -> bool:
        """The last bytes are those of a chunked event stream that ended as it should.

        No event can hold them: data of an event has no line ends. So nothing has to be parsed while
        other streams are to be read.
        """
        tail = b"".join(self.data[-4:])[-len(_DONE_ENDING) :]
        return tail == _DONE_ENDING and self._chunked

    def may_be_complete(self) -> bool:
        """Whether parsing the whole response is worth it.

        Every chunked body ends with an empty line; a body of another framing must be parsed.
        """
        return b"".join(self.data[-4:])[-4:] == b"\r\n\r\n" or not (self.data and self._chunked)

    @property
    def _chunked(self) -> bool:
        return b"chunked" in self.data[0][:_HEAD_BYTES].lower()

    @property
    def received(self) -> bytes:
        """All response bytes so far."""
        return b"".join(self.data)

    def reads(self) -> Reads:
        """The receives with their stamps decoded; called when the burst is over."""
        return Reads(self.user_ns, kernel_walls_ns(self.timespecs), self.data)
