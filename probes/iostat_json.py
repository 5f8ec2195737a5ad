"""`iostat -o JSON` of every sysstat version, also cut short or malformed in the known ways.

Known ways: a termination signal leaves the last closers out (and versions before 12.0.4 do so on an
interrupt too); versions up to 12.1.4 put a comma before the first report under -y.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from .iostat_report import (
    UNIT_BUG,
    IostatDevice,
    IostatFile,
    IostatSample,
    device,
    has_unit_bug,
    without_rates,
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_START = re.compile(r'\{\s*"sysstat"')
_LEADING_COMMA = re.compile(r"\[\s*,")
_CLOSER = {"{": "}", "[": "]"}
# { sysstat { hosts [ host { statistics [  -> a report is complete when the nesting is back at 5.
_REPORT_DEPTH = 5


def salvage(text: str) -> str | None:
    """Cut behind the last complete report and close what is open; None when there is no report."""
    stack: list[str] = []
    end: int | None = None
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in _CLOSER:
            stack.append(mark)
        elif mark in {"}", "]"}:
            if not stack or _CLOSER[stack.pop()] != mark:
                break
            if len(stack) == _REPORT_DEPTH and mark == "}":
                end = token.end()
                closers = "".join(_CLOSER[opener] for opener in reversed(stack))
    return None if end is None else text[:end] + closers


def parse_iostat_json(text: str) -> IostatFile:
    """Samples of the output; a reason instead of samples when nothing in it can be used."""
    start = _START.search(text)
    if start is None:
        return IostatFile(reason="absent: no iostat JSON in this text")
    body = text[start.start() :]
    document, salvaged = _loads(body), False
    if document is None:
        salvaged = True
        # Strings hold no bracket-comma, so the first report's comma can be taken out as text.
        repaired = salvage(_LEADING_COMMA.sub("[", body, count=1))
        document = None if repaired is None else _loads(repaired)
    if document is None:
        return IostatFile(salvaged=True, reason="failed: not one complete report in this text")
    return _file(document, salvaged=salvaged)


def _loads(text: str) -> Any | None:
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return document


def _file(document: Any, *, salvaged: bool) -> IostatFile:
    samples = []
    notes = []
    for report in _reports(document):
        timestamp = report.get("timestamp")
        disks = report.get("disk")
        if not isinstance(disks, list):
            notes.append("absent: a report without a disk list")
            continue
        devices = tuple(_device(disk) for disk in disks if isinstance(disk, dict))
        words = timestamp if isinstance(timestamp, str) else None
        samples.append(IostatSample(timestamp=words, devices=devices))
    taken = tuple(samples)
    reason = None if taken else "absent: no report in this document"
    if has_unit_bug(taken):
        reason = UNIT_BUG
        taken = tuple(without_rates(sample, UNIT_BUG) for sample in taken)
    return IostatFile(samples=taken, salvaged=salvaged, reason=reason, notes=tuple(notes))


def _reports(document: Any) -> list[dict[str, Any]]:
    sysstat = document.get("sysstat") if isinstance(document, dict) else None
    hosts = sysstat.get("hosts") if isinstance(sysstat, dict) else None
    found: list[dict[str, Any]] = []
    for host in hosts if isinstance(hosts, list) else []:
        statistics = host.get("statistics") if isinstance(host, dict) else None
        if isinstance(statistics, list):
            found += [report for report in statistics if isinstance(report, dict)]
    return found


def _device(disk: dict[str, Any]) -> IostatDevice:
    columns = {
        key: float(value)
        for key, value in disk.items()
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) < 1e18  # noqa: PLR2004 - beyond any device; also keeps infinities out
        and math.isfinite(value)
    }
    name = disk.get("disk_device", disk.get("disk"))
    return device(name if isinstance(name, str) else "?", columns)
