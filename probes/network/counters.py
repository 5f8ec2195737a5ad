"""What the counters of network adapters mean: units, widths, and which of them wrap.

RDMA bytes bypass the interface counters of most drivers, so no single source is evidence alone.
Counter names are the drivers' own and differ between them; directories are recorded whole.
"""

from __future__ import annotations

import re

from ..kernel_files import counter_of, no_counter

# Of the InfiniBand specification: data counters count words of four bytes.
BYTES_PER_DATA_WORD = 4
DATA_WORDS = frozenset(
    {"port_rcv_data", "port_xmit_data", "port_multicast_rcv_data", "port_unicast_rcv_data"}
)
WRAP_32 = 1 << 32
# Below this a smaller value is a restart, not a wrap: nobody counts 2^31 between two samples.
WRAP_FLOOR = 1 << 31
# mlx5's queue counters are 32 bits wide in its firmware; congestion and checksum ones are 64.
Q_COUNTERS_32 = frozenset(
    [
        *("rx_write_requests", "rx_read_requests", "rx_atomic_requests", "rx_dct_connect"),
        *("out_of_buffer", "out_of_sequence", "duplicate_request", "rnr_nak_retry_err"),
        *("packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err"),
        *("resp_local_length_error", "resp_cqe_error", "req_cqe_error"),
        *("req_remote_invalid_request", "req_remote_access_errors", "resp_remote_access_errors"),
        *("resp_cqe_flush_error", "req_cqe_flush_error"),
        *("req_transport_retries_exceeded", "req_rnr_retries_exceeded"),
        *("roce_adp_retrans", "roce_adp_retrans_to"),
        *("roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans"),
    ]
)
# In switchdev mode the same counters carry this prefix.
_SWITCHDEV = "vport_"
# A refresh interval in ms that lies among the counters.
NO_COUNTERS = frozenset({"lifespan"})
# How ionic's firmware marks a counter it does not have.
_ALL_ONES = b"18446744073709551615"
_PER_QUEUE = re.compile(
    r"^(?:(?:rx|tx|ch|rxq|txq|xdp)[_-]?\d+|(?:rx|tx)_queue_\d+|q\d+|ch\d+)[_.-]"
)


def is_q_counter(name: str) -> bool:
    """Whether a hw_counters name is one of the 32-bit ones."""
    return name.removeprefix(_SWITCHDEV) in Q_COUNTERS_32


def is_per_queue(name: str) -> bool:
    """Statistics of single queues: hundreds of them, and their sum stands beside them."""
    return _PER_QUEUE.match(name) is not None


def port_counter(text: bytes) -> tuple[int | None, str | None]:
    """A value, or why the file gives none."""
    stripped = text.strip()
    if stripped == _ALL_ONES:
        return None, "absent: the driver marks it as having no value"
    value = counter_of(stripped)
    return (value, None) if value is not None else (None, no_counter(stripped))


class Unwrapper:
    """Continues 32-bit counters over their wrap; a value that fell otherwise is left as it is."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}
        self._added: dict[tuple[str, str], int] = {}

    def take(self, device: str, name: str, raw: int) -> tuple[int, bool]:
        """The continued value, and whether it wrapped just now."""
        key = (device, name)
        before = self._last.get(key)
        self._last[key] = raw
        wrapped = (
            before is not None and raw < before and WRAP_FLOOR < before < WRAP_32 and raw < WRAP_32
        )
        if wrapped:
            self._added[key] = self._added.get(key, 0) + WRAP_32
        return raw + self._added.get(key, 0), wrapped
