"""What to record: a JSON object, checked key by key before anything starts.

`host` and `rates_hz` are common to all probes. Every other key is a `Setting` that a probe declares
in its own module.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

# Beyond this the sampler would disturb what it watches.
MAX_RATE_HZ = 100.0
# Slower than this a probe would not be seen to have stopped.
MIN_RATE_HZ = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[T]):
    """One key of a plan. `accept` gives the checked value, or None to refuse what was given."""

    key: str
    default: T
    accept: Callable[[Any], T | None]
    example: str  # what to give instead, for the refusal


def names(value: Any) -> tuple[str, ...] | None:
    """A list of names, each taken once."""
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(dict.fromkeys(value))
    return None


def flag(value: Any) -> bool | None:
    """True or false; 0 and 1 are neither."""
    return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one `record` process watches on its host; `plan[SETTING]` is the value of a key."""

    host: str = field(default_factory=socket.gethostname)
    rates_hz: Mapping[str, float] = field(default_factory=dict)  # 0: the probe is left out
    values: Mapping[str, Any] = field(default_factory=dict)  # by key, as accepted

    def __getitem__(self, setting: Setting[T]) -> T:
        """The accepted value of a key, or its default."""
        value: T = self.values.get(setting.key, setting.default)
        return value

    def row(self) -> dict[str, Any]:
        """The plan as it is recorded."""
        return {"host": self.host, "rates_hz": self.rates_hz, **self.values}


def read_plan(given: str) -> tuple[dict[str, Any], str]:
    """The object of a plan given as JSON text or as a file's path, and where it was found."""
    inline = given.lstrip().startswith("{")
    where = "--plan" if inline else given
    try:
        values = json.loads(given if inline else Path(given).read_bytes())
    except OSError as error:
        what = f"cannot read the plan: {error.strerror}"
        raise _refused(what, where, "give --plan a file or a JSON object") from error
    except ValueError as error:
        raise _refused(f"the plan is not JSON: {error}", where, "write a JSON object") from error
    if not isinstance(values, dict):
        raise _refused("the plan is not a JSON object", where, "write a JSON object")
    return values, where


def make_plan(
    values: Mapping[str, Any],
    where: str,
    rates_hz: Mapping[str, float],
    settings: Iterable[Setting[Any]],
) -> Plan:
    """Check a plan's keys against the default rates and the settings of all probes.

    Raises ProbeError, which names the key that is wrong and what to give instead.
    """
    declared = {setting.key: setting for setting in settings}
    known = ("host", "rates_hz", *declared)
    accepted: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise _refused(f"unknown key {key!r}", where, f"use one of {', '.join(known)}")
        if key in declared:
            accepted[key] = declared[key].accept(value)
            if accepted[key] is None:
                raise _refused(f"{key} is {value!r}", where, f"give {declared[key].example}")
    host = values.get("host", socket.gethostname())
    if not (isinstance(host, str) and host):
        raise _refused(f"host is {host!r}", where, "give the host a name")
    rates = {**rates_hz, **_rates_hz(values.get("rates_hz", {}), where, tuple(rates_hz))}
    return Plan(host=host, rates_hz=rates, values=accepted)


def _rates_hz(value: Any, where: str, known: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(value, dict):
        raise _refused(f"rates_hz is {value!r}", where, 'give rates: {"disk": 10}')
    for name, rate in value.items():
        if name not in known:
            raise _refused(f"rates_hz names no probe {name!r}", where, f"use {', '.join(known)}")
        number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if not number or not (rate == 0 or MIN_RATE_HZ <= rate <= MAX_RATE_HZ):
            span = f"a rate between {MIN_RATE_HZ:g} and {MAX_RATE_HZ:g} Hz, or 0 to leave it out"
            raise _refused(f"rates_hz of {name} is {rate!r}", where, f"give {span}")
    return {name: float(rate) for name, rate in value.items()}


def _refused(what: str, where: str, next_step: str) -> ProbeError:
    return ProbeError(what, where=where, next_step=next_step)
