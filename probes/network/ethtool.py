"""Driver statistics of a network interface by the ETHTOOL ioctl, without the ethtool program."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x3
_GSTRINGS = 0x1B
_GSTATS = 0x1D
_SET_STATS = 1
_STRING_BYTES = 32
_DRVINFO_BYTES = 196
# struct ethtool_drvinfo: n_stats after six fixed texts and n_priv_flags.
_DRVINFO_N_STATS = 180
_IFREQ = struct.Struct("16sP16x")
_IFNAMSIZ = 16
_MAX_STATS = 1 << 16
_NO_STATS = errno.EOPNOTSUPP


class EthtoolStats:
    """Names and values of one interface's driver statistics. Names are asked for once."""

    def __init__(self, interface: str) -> None:
        if len(interface.encode()) >= _IFNAMSIZ:
            raise OSError(errno.EINVAL, f"{interface!r} is no interface name")
        self._interface = interface.encode()
        self._names: list[str] = []

    def read(self) -> dict[str, int]:
        """Every statistic, unsigned 64 bits. Raises OSError when the driver has none."""
        count = self._count()
        if count != len(self._names):
            # Queues were added or taken away, so the statistics have other numbers now.
            self._names = self._strings(count)
        data = ctypes.create_string_buffer(8 + 8 * count)
        struct.pack_into("=II", data, 0, _GSTATS, count)
        self._ioctl(data)
        (got,) = struct.unpack_from("=I", data, 4)
        values = struct.unpack_from(f"={min(got, count)}Q", data, 8)
        return dict(zip(self._names, values, strict=False))

    def _ioctl(self, data: ctypes.Array[ctypes.c_char]) -> None:
        request = bytearray(_IFREQ.pack(self._interface, ctypes.addressof(data)))
        # Any socket will do: the ioctl names the interface it asks about.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket.fileno(), _SIOCETHTOOL, request)

    def _count(self) -> int:
        data = ctypes.create_string_buffer(_DRVINFO_BYTES)
        struct.pack_into("=I", data, 0, _GDRVINFO)
        self._ioctl(data)
        (count,) = struct.unpack_from("=I", data, _DRVINFO_N_STATS)
        if not 0 < count <= _MAX_STATS:
            raise OSError(_NO_STATS, "the driver has no statistics")
        return int(count)

    def _strings(self, count: int) -> list[str]:
        data = ctypes.create_string_buffer(12 + _STRING_BYTES * count)
        struct.pack_into("=III", data, 0, _GSTRINGS, _SET_STATS, count)
        self._ioctl(data)
        texts = (data.raw[12 + _STRING_BYTES * at :][:_STRING_BYTES] for at in range(count))
        return [text.partition(b"\0")[0].decode("ascii", "replace").strip() for text in texts]
