"""iostat's table form. The witness is recorded as JSON; tables are what other people kept.

A decimal comma is understood; the rounded values of --human are refused, and so is a value that is
no number: neither becomes a 0.
"""

from __future__ import annotations

import re

from .iostat_report import IostatDevice, IostatFile, IostatSample, device

_NUMBER = re.compile(r"^\d+(?:[.,]\d+)?$")
_TIMESTAMP = re.compile(r"^(?:\d{4}-\d\d-\d\dT|\d\d[./]\d\d[./]\d\d(?:\d\d)? +\d)")
_HEADER = re.compile(r"^Device:?\s")
_HUMAN = re.compile(r"\sDevice:?\s*$")
HUMAN = "refused: --human rounds its values and moves its columns; record without -h"


def parse_iostat_text(text: str) -> IostatFile:
    """Samples of the tables in `text`; a reason when there is none that can be used."""
    samples: list[IostatSample] = []
    notes: list[str] = []
    timestamp: str | None = None
    header: list[str] = []
    devices: list[IostatDevice] = []
    if any(_HUMAN.search(line) for line in text.splitlines()):
        return IostatFile(reason=HUMAN)
    # A last line without its newline may end inside a number.
    for line in [*text.split("\n")[:-1], ""]:
        line = line.rstrip("\r")  # noqa: PLW2901
        if _TIMESTAMP.match(line):
            timestamp = line.strip()
        elif _HEADER.match(line):
            header = [column.removeprefix("%") for column in line.split()[1:]]
            # rrqm/s is a rate, %rrqm a share; only the share loses its sign, as in the JSON form.
        elif header and line.strip():
            devices.append(_row(line.split(), header, notes))
        elif header:
            samples.append(IostatSample(timestamp=timestamp, devices=tuple(devices)))
            header, devices, timestamp = [], [], None
    reason = None if samples else "absent: no iostat table in this text"
    return IostatFile(samples=tuple(samples), reason=reason, notes=tuple(notes))


def _row(words: list[str], header: list[str], notes: list[str]) -> IostatDevice:
    name, values = words[0], words[1:]
    if len(values) != len(header) or not all(_NUMBER.match(value) for value in values):
        notes.append(f"failed: the row of {name} does not fit its header")
        return IostatDevice(
            name=name,
            columns={},
            read_bytes_per_s=None,
            write_bytes_per_s=None,
            util_percent=None,
            reason="failed: the row does not fit its header",
        )
    numbers = [float(value.replace(",", ".")) for value in values]
    return device(name, dict(zip(header, numbers, strict=True)))
