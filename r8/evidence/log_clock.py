"""The instants an engine's log gives, on the clocks of the host that recorded the run.

LMCache stamps its lines to the millisecond, vLLM to the second and without a year, both by the wall
clock and zone of the host they run on. The zone stands nowhere; it follows from the run. A log that
begins and ends within the run fits one whole number of quarters of an hour, or it fits several and
its instants stay unknown. They are as good as that wall clock: where it was set, they jump with it.
"""

from __future__ import annotations

import bisect
import calendar
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

_LMCACHE = re.compile(r"\[(\d{4})-(0[1-9]|1[0-2])-(\d\d) (\d\d):(\d\d):(\d\d),(\d{3})\] LMCache ")
_VLLM = re.compile(r"\b[A-Z]{4,8} (0[1-9]|1[0-2])-(\d\d) (\d\d):(\d\d):(\d\d) \[")
# Zones differ by whole quarters of an hour.
_QUARTER_NS = 15 * 60 * NS_PER_S
# A stamp without fractions is up to a second early; two hosts' clocks are some milliseconds apart.
_SLACK_NS = 2 * NS_PER_S
_YEAR_S = 31_556_952  # on the average of 400 years


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One event of the run, on both clocks."""

    mono_ns: int
    wall_ns: int
    name: str
    detail: str | None


class LogClock:
    """Reads the stamps of one instance's log against the marks of its run."""

    def __init__(self, marks: Iterable[Mark], instance: str) -> None:
        """`marks` are the run's events; what they say of the instance's host counts."""
        self._marks = sorted(marks, key=lambda one: one.wall_ns)
        self._ahead_ns = _ahead_ns(self._marks, instance)
        self._zone_ns: int | None = None

    def set_zone(self, first: str | None, last: str | None) -> None:
        """Find the zone from the first and the last line that has a stamp."""
        faces = [self.face_ns(line) for line in (first, last) if line is not None]
        known = [face - self._ahead_ns for face in faces if face is not None]
        if not known or not self._marks:
            return
        begin_ns, end_ns = self._marks[0].wall_ns, self._marks[-1].wall_ns
        low = -(-(max(known) - end_ns - _SLACK_NS) // _QUARTER_NS)
        high = (min(known) - begin_ns + _SLACK_NS) // _QUARTER_NS
        self._zone_ns = low * _QUARTER_NS if low == high else None

    def face_ns(self, text: str) -> int | None:
        """What the clock behind a line's stamp showed, as if it were UTC; None without a stamp."""
        if found := _LMCACHE.search(text):
            *face, millis = map(int, found.groups())
            return _s_of(face) * NS_PER_S + millis * NS_PER_MS
        if not (found := _VLLM.search(text)):
            return None
        near_s = self._marks[-1].wall_ns // NS_PER_S if self._marks else 0
        year = 1970 + near_s // _YEAR_S
        faces = [_s_of([one, *map(int, found.groups())]) for one in (year - 1, year, year + 1)]
        return min(faces, key=lambda face: abs(face - near_s)) * NS_PER_S

    def first_stamped(self, texts: Iterable[str]) -> str | None:
        """The first of these lines that has a stamp."""
        return next((text for text in texts if self.face_ns(text) is not None), None)

    def instants(self, text: str) -> dict[str, int | None]:
        """`mono_ns` and `wall_ns` of a line."""
        face = None if self._zone_ns is None else self.face_ns(text)
        if face is None or self._zone_ns is None:
            return {"mono_ns": None, "wall_ns": None}
        wall_ns = face - self._zone_ns - self._ahead_ns
        before = bisect.bisect_right(self._marks, wall_ns, key=lambda one: one.wall_ns)
        near = self._marks[max(0, before - 1)]
        return {"mono_ns": wall_ns - near.wall_ns + near.mono_ns, "wall_ns": wall_ns}


def _s_of(face: list[int]) -> int:
    """Seconds since 1970 of year, month, day, hour, minute, second."""
    return calendar.timegm((*face,))


def _ahead_ns(marks: Iterable[Mark], instance: str) -> int:
    """By how much the wall clock of the instance's host was ahead of the recording host's."""
    hosts: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    for mark in marks:
        if mark.name not in {"engine_started", "clock_offset"}:
            continue
        facts = json.loads(mark.detail or "{}")
        if not isinstance(facts, dict):
            continue
        wall_ns = facts.get("wall_ns")
        if mark.name == "engine_started":
            hosts[str(facts.get("instance", ""))] = facts.get("host")
        elif isinstance(wall_ns, int):
            offsets[str(facts.get("host"))] = wall_ns
    return offsets.get(str(hosts.get(instance)), 0)
