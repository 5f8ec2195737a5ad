"""One request on its way: its bytes, its socket, and the instants and reads it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .capture import Read, kernel_wall_ns

if TYPE_CHECKING:
    import socket

    from .link import Link
    from .target import Target

_HEAD_BYTES = 4096


@dataclass(slots=True, eq=False)
class Connection:
    """One request on its way. Instants are monotonic; None until they come."""

    request_id: str
    payload: bytes  # b"" once it is sent
    target: Target
    request_bytes: int = field(init=False)
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
    raw_reads: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    looked_at_bytes: int = 0
    ended: str | None = None
    ended_ns: int | None = None
    ended_detail: str | None = None

    def live_socket(self) -> socket.socket:
        """The open socket; ValueError without one."""
        if self.sock is None:
            raise ValueError(f"{self.request_id} has no socket")
        return self.sock

    def __post_init__(self) -> None:
        """Remember the size: encryption changes it, and sending forgets the bytes."""
        self.request_bytes = len(self.payload)

    def may_be_complete(self) -> bool:
        """A cheap look before the whole response is parsed.

        Every chunked body ends with an empty line; a body of another framing must be looked at.
        """
        tail = b"".join(data for _, data, _ in self.raw_reads[-4:])[-4:]
        if tail == b"\r\n\r\n" or not self.raw_reads:
            return True
        return b"chunked" not in self.raw_reads[0][1][:_HEAD_BYTES].lower()

    @property
    def received(self) -> bytes:
        """All response bytes so far."""
        return b"".join(data for _, data, _ in self.raw_reads)

    def reads(self) -> tuple[Read, ...]:
        """The receives with their stamps decoded; called when the burst is over."""
        return tuple(
            Read(user_ns, kernel_wall_ns(stamp), data) for user_ns, data, stamp in self.raw_reads
        )
