"""What an iostat report says, whatever version of sysstat printed it.

Rates here are a witness, not evidence: whoever judges recomputes them from /proc/diskstats.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

BYTES_PER_SECTOR = 512
# Units of sysstat's columns in bytes; its kB is 1024 bytes and its MB 1048576.
RATE_UNITS = {"sec/s": 512, "kB/s": 1024, "MB/s": 1 << 20}

UNIT_BUG = "refused: sysstat 12.2.0 prints sectors as kB or MB in JSON (sysstat issue 264)"
# In the bug, bytes per request computed from the rate are 2x (kB) or 2048x (MB) those printed
# beside it. Rounding to 0.01 moves an honest ratio by a few per cent at most where enough requests
# were counted; half way between 1 and 2 lies far from both.
UNIT_BUG_RATIO = 1.5
_MIN_REQUESTS_PER_S = 0.5
_MIN_REQUEST_KB = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatDevice:
    """One device in one report: sysstat's own columns, and its rates in bytes where it has them."""

    name: str
    columns: dict[str, float]
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    util_percent: float | None
    reason: str | None = None  # why there are no rates


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatSample:
    """One report. `timestamp` is sysstat's own text, None when it was started without -t."""

    timestamp: str | None
    devices: tuple[IostatDevice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatFile:
    """A whole output. `reason` says why there are no samples, or why they must not be used."""

    samples: tuple[IostatSample, ...] = ()
    salvaged: bool = False  # the text was cut or malformed; whole reports were taken out of it
    reason: str | None = None
    notes: tuple[str, ...] = field(default=())


def _rate(columns: dict[str, float], letter: str, word: str) -> float | None:
    for unit, factor in RATE_UNITS.items():
        for key in (f"{letter}{unit}", f"{unit.removesuffix('/s')}_{word}/s"):
            if key in columns:
                return columns[key] * factor
    return None


def device(name: str, columns: dict[str, float]) -> IostatDevice:
    """Rates in bytes out of whichever columns this version prints."""
    read = _rate(columns, "r", "read")
    write = _rate(columns, "w", "wrtn")
    known = read is not None or write is not None
    return IostatDevice(
        name=name,
        columns=columns,
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        util_percent=columns.get("util"),
        reason=None if known else "absent: no column with a rate in bytes",
    )


def has_unit_bug(samples: tuple[IostatSample, ...]) -> bool | None:
    """True when rates contradict the request sizes printed beside them; None: no traffic to tell.

    Formula: (rkB/s) / (r/s x rareq-sz), about 1 when honest.
    """
    verdict = None
    for sample in samples:
        for one in sample.devices:
            for letter, rate in (("r", one.read_bytes_per_s), ("w", one.write_bytes_per_s)):
                requests = one.columns.get(f"{letter}/s", 0.0)
                size_kb = one.columns.get(f"{letter}areq-sz", 0.0)
                if rate is None or requests < _MIN_REQUESTS_PER_S or size_kb < _MIN_REQUEST_KB:
                    continue
                if rate / 1024 / (requests * size_kb) > UNIT_BUG_RATIO:
                    return True
                verdict = False
    return verdict


def without_rates(sample: IostatSample, reason: str) -> IostatSample:
    """The sample with every rate in bytes taken out; sysstat's own columns stay as printed."""
    devices = tuple(
        replace(one, read_bytes_per_s=None, write_bytes_per_s=None, reason=reason)
        for one in sample.devices
    )
    return replace(sample, devices=devices)
