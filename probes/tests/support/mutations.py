"""Captures spoiled at random: cut, reordered, with other types and other text in them.

Whatever comes of it, a parser raises nothing, and a 0 in its answer is a 0 in the text.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.block.disk import parse_diskstats
from probes.block.mounts import parse_mountinfo
from probes.engine.prometheus import parse_metrics
from probes.gpu.sources import TOOLS
from probes.host.counters import parse_cpu, parse_meminfo, parse_vmstat
from probes.process.counters import parse_io
from probes.record.iostat import count_reports
from probes.tests.support.captures import SAMPLES, captures_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

_ZERO = re.compile(r"(?<![\d.])[+-]?0+(?:[.,]0*)?(?:[eE][+-]?\d+)?(?![\d.])")
_TOKENS = re.compile(r"(\W)")
# What has been seen in place of a number, and what has not but might.
FOREIGN = (
    *("N/A", '"N/A"', "[N/A]", "[Not Supported]", "null", "true", "-", "-1", "NaN", "Infinity"),
    *("1e999", "18446744073709551615", "4294967296", "9" * 40, "12,5", "{}", "[]", '"x"', "\u00b2"),
    *("WARNING: AMD GPU device(s) is/are in a low-power state.\n", "'CTRL' + 'C'\n", "\x00", "\n"),
    *('{"gpu": "N/A"}', 'Expected integer value from monitor, but got ""\n', " " * 50, "\t"),
)
_DEVICES = frozenset({"md0", "nvme1n1", "nvme1c1n1", "nvme0n1", "vda"})


def _text(parse: Callable[[bytes], Any]) -> Callable[[str], Any]:
    return lambda text: parse(text.encode("utf-8", "replace"))


# Which parser reads which captures, by the beginning of their names.
PARSERS: dict[str, tuple[Callable[[str], Any], ...]] = {
    **{captures_of(tool.name): (tool.page,) for tool in TOOLS},
    "iostat_": (lambda text: count_reports(text)[0] or None,),
    "cache_": (_text(parse_io),),
    "diskstats_": (_text(lambda data: parse_diskstats(data, _DEVICES)),),
}
# Kernel files of every host, short enough to stand here.
KERNEL_TEXTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "io": ("rchar: 268435716\nread_bytes: 268435456\nwrite_bytes: 77\n", _text(parse_io)),
    "stat": ("cpu  5514 3 6021 91287 14 7 35 9\ncpu0 1 2 3\n", _text(parse_cpu)),
    "meminfo": ("MemTotal: 24576 kB\nCached: 1234 kB\nDirty: 16 kB\n", _text(parse_meminfo)),
    "vmstat": ("pgpgin 123456\npgmajfault 42\n", _text(parse_vmstat)),
    "mountinfo": ("25 1 9:3 / /kv rw - xfs /dev/md3 rw\n", parse_mountinfo),
    "metrics": ('# TYPE a counter\na_total{x="1"} 5\nb 7.5\n', parse_metrics),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One text and one parser of it."""

    name: str
    text: str
    parse: Callable[[str], Any]


def all_cases() -> list[Case]:
    """Every capture with every parser that may be given it."""
    cases = [Case(name=name, text=text, parse=p) for name, (text, p) in KERNEL_TEXTS.items()]
    for path in sorted(SAMPLES.iterdir()):
        name = path.name.removeprefix("capture_")
        for prefix, parsers in PARSERS.items():
            if name.startswith(prefix):
                text = path.read_text(encoding="utf-8")
                cases += [Case(name=name, text=text, parse=parse) for parse in parsers]
    return cases


def spoil(text: str, dice: random.Random) -> str:
    """One to three changes of a text."""
    for _ in range(dice.randint(1, 3)):
        text = dice.choice(_WAYS)(text, dice)
    return text


def _cut(text: str, dice: random.Random) -> str:
    return text[: dice.randint(0, len(text))]


def _behead(text: str, dice: random.Random) -> str:
    return text[dice.randint(0, len(text)) :]


def _insert(text: str, dice: random.Random) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(FOREIGN) + text[at:]


def _swap_token(text: str, dice: random.Random) -> str:
    tokens = _TOKENS.split(text)
    for _ in range(dice.randint(1, 5)):
        tokens[dice.randrange(len(tokens))] = dice.choice(FOREIGN)
    return "".join(tokens)


def _reorder(text: str, dice: random.Random) -> str:
    pieces = text.split(dice.choice(["\n", ",", " "]))
    dice.shuffle(pieces)
    return dice.choice(["\n", ",", " "]).join(pieces)


def _swap_types(text: str, dice: random.Random) -> str:
    """Replace one value inside a JSON document by one of another type."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _swap_token(text, dice)
    places = list(_places(document))
    if not places:
        return text
    holder, key = dice.choice(places)
    holder[key] = dice.choice([None, [], {}, "N/A", "", -1, 1e300, True, [holder[key]], "0x0"])
    return json.dumps(document)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield value, key
        yield from _places(inner)


_WAYS = (_cut, _behead, _insert, _swap_token, _reorder, _swap_types)


def check(case: Case, text: str) -> None:
    """Parse; an exception or a 0 that nobody wrote fails."""
    answer = case.parse(text)
    zeros = [where for where, number in _numbers(answer, "answer") if number == 0]
    if zeros and not _ZERO.search(text):
        raise AssertionError(f"{case.name}: {zeros[0]} is 0, the text has none: {text!r}")


def _numbers(value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (int, float)):
        yield where, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            # An epoch is the recorder's own count.
            if field.name != "epoch":
                yield from _numbers(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{where}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield from _numbers(inner, f"{where}[{place}]")
