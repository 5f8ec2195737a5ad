"""The one accessor of the catalogues: messages and checks as text, in English or Chinese.

`catalogues/<language>/<area>.ftl` are Fluent files. A message fills its entry with its facts; an
entry of a check has an attribute `.otherwise`: what it means when the check did not hold. Numbers
are formatted here, by the unit at the end of a fact's name, before Fluent sees them: Fluent would
group digits by locale and by the version of its tables.

Facts that are words may be a stranger's. They pass the filter of their target (`r8.text`): that of
a terminal, or of Markdown where the language is asked for as `InMarkdown`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fluent.runtime import FluentBundle, FluentResource

from r8.message import Answer, Check, Fact, Facts, Message, parse_reason
from r8.model import Finding
from r8.text import Markdown, Visible
from r8.units import BYTES_PER_GIB, BYTES_PER_MIB, NS_PER_S, mb_per_s, ms_from_ns, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fluent.runtime.resolver import Message as Entry

    from r8.model import Reason

LANGUAGES = ("en", "zh")


class InMarkdown(str):
    """A language whose texts become Markdown: `say(InMarkdown("en"), ...)` gives `Markdown`."""

    __slots__ = ()


CATALOGUES = Path(__file__).resolve().parent / "catalogues"
OTHERWISE = "otherwise"
_BETWEEN = {"en": "; ", "zh": "\uff1b"}
# Findings told in full where they are reasons.
FINDINGS_SHOWN = 3
# What every check gives its entry beside its own facts.
OF_EVERY_CHECK = ("measured", "limit", "low", "high", "side")
_MARKS = {
    Answer.HELD: None,
    Answer.REFUTED: "mark-refuted",
    Answer.UNKNOWN: "mark-unknown",
    Answer.NOT_APPLICABLE: "mark-not-applicable",
}
# Units by the end of a fact's name; the longer end first.
_UNITS = {
    "_bytes_per_s": "bytes/s",
    "_bytes": "bytes",
    "_ns": "ns",
    "_share": "share",
    "_deviation": "deviation",
    "_ratio": "ratio",
}


# Bytes to the last one, where two rounded sizes would look the same.
_EXACT = "bytes, exact"


def render(message: Message, language: str = "en") -> Visible:
    """The text of a message.

    Raises:
        LookupError: the catalogue of this language has no such entry.
        ValueError: the entry names a fact that the message does not have.

    """
    return _formatted(message.id, None, _shown_facts(message.facts, language), language)


def say(language: str, entry: str, **facts: Fact) -> Visible:
    """The text of an entry of the catalogues; raises as `render`."""
    return render(Message(id=entry, facts=facts), language)


def render_check(check: Check, language: str = "en") -> Visible:
    """The numbers of a check and its comparison, marked where it did not hold; raises as `render`.

    The entry may use `$measured`, `$limit` (or `$low` and `$high`) and, of a range, `$side`:
    "below", "inside" or "above".
    """
    text = _formatted(check.message, None, _check_facts(check, language), language)
    mark = _MARKS[check.answer]
    return text if mark is None else _target(language)(" ").join([text, say(language, mark)])


def render_otherwise(check: Check, language: str = "en") -> Visible:
    """What it means that a check did not hold; empty when it held; raises as `render`."""
    if check.answer is Answer.HELD or OTHERWISE not in _entry(check.message, language).attributes:
        return _target(language)("")
    return _formatted(check.message, OTHERWISE, _check_facts(check, language), language)


def render_reason(text: str, language: str = "en") -> Visible:
    """The text of a `reason` column, after what it is about where that is not its own row.

    Raises:
        ValueError: the column is not in the grammar of `r8.message.spelled`; and as `render`.

    """
    return _about(parse_reason(text), language)


def _about(reason: Message, language: str) -> Visible:
    about, text = reason.facts.get("on"), render(reason, language)
    if about is None:
        return text
    return render(Message(id="reason-on", facts={"on": about, "reason": text}), language)


def render_reasons(reasons: Iterable[Reason], language: str = "en") -> Visible:
    """Why a verdict, a gate or a repeated run came to what it did; raises as `render`.

    Of findings that forbid judging the first few are told; the certificate has them all.
    """
    every = list(reasons)
    findings = [one for one in every if isinstance(one, Finding)]
    left = findings[FINDINGS_SHOWN:]
    texts = [_reason(one, language) for one in every if one not in left]
    if left:
        texts.append(say(language, "verdict-more-findings", n=len(left)))
    return _target(language)(_BETWEEN[language]).join(texts)


def _reason(reason: Reason, language: str) -> Visible:
    if isinstance(reason, Message):
        return _about(reason, language)
    if isinstance(reason, Finding):
        mine = [check for check in reason.checks if check.answer is reason.answer]
        numbers = render_checks(mine, language)
        facts = {"rule": reason.rule_id, "run": reason.run_id, "numbers": numbers}
        return say(language, "verdict-finding", **facts)
    # Entries of reasons name both sides: that they differ needs no mark.
    if reason.answer is Answer.UNKNOWN:
        return render_check(reason, language)
    return _formatted(reason.message, None, _check_facts(reason, language), language)


def render_checks(checks: Sequence[Check], language: str = "en") -> Visible:
    """The numbers of several checks, one after another; raises as `render`."""
    texts = [render_check(check, language) for check in checks]
    between = _target(language)(_BETWEEN[language])
    return between.join(texts) or say(language, "nothing-to-look-at")


def render_meaning(checks: Sequence[Check], language: str = "en") -> Visible:
    """What follows from the checks that did not hold, gravest first; raises as `render`."""
    order = (Answer.REFUTED, Answer.UNKNOWN, Answer.NOT_APPLICABLE)
    sorted_checks = [check for answer in order for check in checks if check.answer is answer]
    texts = [render_otherwise(check, language) for check in sorted_checks]
    between = _target(language)("" if language == "zh" else " ")
    return between.join(filter(None, dict.fromkeys(texts)))


def render_part(entry: str, part: str, facts: Facts, language: str = "en") -> Visible:
    """An attribute of an entry, `.why` of a rule for example; raises as `render`."""
    return _formatted(entry, part, _shown_facts(facts, language), language)


def shown(value: Fact, unit: str = "") -> str:
    """A value with its unit, the same in every language; `?` where it is absent."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if unit in _FORMATS:
        return _FORMATS[unit](value)
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _time(value_ns: float) -> str:
    if abs(value_ns) >= NS_PER_S:
        return f"{s_from_ns(value_ns):.3f} s"
    return f"{ms_from_ns(value_ns):.3f} ms"


def _size(size_bytes: float) -> str:
    """Binary units, two digits behind the point; JSON has the bytes."""
    for unit, name in ((BYTES_PER_GIB, "GiB"), (BYTES_PER_MIB, "MiB")):
        if abs(size_bytes) >= unit:
            return f"{size_bytes / unit:.2f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{round(size_bytes)} B"


_FORMATS: dict[str, Callable[[float], str]] = {
    "bytes": _size,
    _EXACT: lambda size: f"{round(size)} B",
    "bytes/s": lambda rate: f"{mb_per_s(rate):.1f} MB/s",
    "ns": _time,
    "share": lambda share: f"{100 * share:.4g}%",
    "deviation": lambda share: f"{share:+.2%}",
    "quotient": lambda quotient: f"{quotient:.4g}",
    "ratio": lambda ratio: f"{ratio:.4f}",
}


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _target(language: str) -> type[Visible]:
    return Markdown if isinstance(language, InMarkdown) else Visible


def _shown_facts(facts: Facts, language: str) -> dict[str, str]:
    """Facts as text; a fact whose name ends in `_value` has the unit that the fact `unit` names."""
    unit = _target(language).of(facts.get("unit", ""))
    return {
        name: _words(value, language)
        or (valued(value, unit) if name.endswith("_value") else shown(value, _unit(name)))
        for name, value in facts.items()
    }


def _words(value: Fact, language: str) -> str:
    """A fact that is words, filtered; nothing for numbers, which R8 formats."""
    return _target(language).of(value) if isinstance(value, str) else ""


def valued(value: Fact, unit: str) -> str:
    """A number of a claim in the claim's unit, four digits of it: `7.53 s`, `4.1 x`."""
    if unit in _FORMATS or not isinstance(value, float):
        return shown(value, unit)
    return f"{value:.4g} {unit}".rstrip()


def _check_facts(check: Check, language: str) -> dict[str, str]:
    # Words that are none would leave a hole in a row of numbers.
    found = {name: text or "-" for name, text in _shown_facts(check.facts, language).items()}
    write, unit = valued if "unit" in check.facts else shown, _unit_of(check)
    found["measured"] = _words(check.measured, language) or write(check.measured, unit)
    if not isinstance(check.limit, tuple):
        limit = _words(check.limit, language) or write(check.limit, unit)
        return found | {"limit": limit}
    each = [_words(one, language) or shown(one, unit) for one in check.limit]
    found |= {"limit": ", ".join(each), "low": each[0], "high": each[-1]}
    return found | {"side": _side(check.measured, check.limit)}


def _unit_of(check: Check) -> str:
    """The check's unit; exact bytes where a rounded size would hide how its two sides differ."""
    ends = check.limit if isinstance(check.limit, tuple) else (check.limit,)
    hidden = (one for one in ends if one != check.measured)
    if check.unit == "bytes" and shown(check.measured, "bytes") in {
        shown(one, "bytes") for one in hidden
    }:
        return _EXACT
    return check.unit


def _side(measured: Fact, limit: tuple[Fact, ...]) -> str:
    low, high = limit[0], limit[-1]
    if not all(isinstance(one, int | float) for one in (measured, low, high)):
        return "inside"
    return "below" if measured < low else "above" if measured > high else "inside"  # type: ignore[operator]


def _formatted(entry: str, attribute: str | None, facts: dict[str, str], language: str) -> Visible:
    found = _entry(entry, language)
    pattern = found.value if attribute is None else found.attributes.get(attribute)
    if pattern is None:
        raise LookupError(f"entry {entry!r} of {language!r} has no {attribute or 'text'}")
    text, errors = _bundle(language).format_pattern(pattern, facts)
    if errors:
        raise ValueError(f"entry {entry!r} of {language!r}: {errors[0]}")
    if not isinstance(language, InMarkdown):
        return Visible(str(text))
    # A name without a letter inside a pair of backticks would open `code` that ends elsewhere.
    return Markdown(str(text).replace("``", "`-`"))


def _entry(name: str, language: str) -> Entry:
    bundle = _bundle(language)
    if not bundle.has_message(name):
        raise LookupError(f"no entry {name!r} in the catalogues of {language!r}")
    return bundle.get_message(name)


@cache
def _bundle(language: str) -> FluentBundle:
    bundle = FluentBundle([language], use_isolating=False)
    for path in sorted((CATALOGUES / language).glob("*.ftl")):
        bundle.add_resource(FluentResource(path.read_text(encoding="utf-8")))
    return bundle
