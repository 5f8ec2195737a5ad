"""Secrets by the names and forms they are written in: the one place that knows them.

A run replaces their values where it records a text (`masked`); a seal looks again (`secrets_in`)
and refuses. What is found is told by kind and line, never by its value.

Cannot find: a secret that has no known form and stands beside no sensitive name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# What stands where a value stood.
MASK = "***"
# Names whose values are secrets, whatever they are called before and joined by.
_NAMES = (
    r"(?:api|access|secret|private|account|storage|signing|encryption|master|license|shared)"
    r"[_-]?keys?(?:[_-]id)?|(?:client|shared)?[_-]?secrets?|pass(?:word|wd|phrase|code)|pwd|"
    r"credentials?|(?:auth|access|refresh|id|session|bearer|hf|hub|sas|security)[_-]?tokens?|token|"
    r"x-amz-signature|sessionid|sid|sig"
)
# Texts of a model's vocabulary are called tokens as well.
_IN_A_VOCABULARY = r"(?<!bos_)(?<!eos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!mask_)"
# A value, and what is none: a number, a placeholder, a variable, a word of the language, a mask.
_VALUE = r"[^\s\"'`\\,;<>()\[\]{}]+"
_NO_VALUE = (
    r"(?!\d{1,6}(?![^\s\"'`\\,;<>()\[\]{}])|none\b|null\b|true\b|false\b|[$%]|\*\*\*|"
    r"(?:is|are|was|for|not|of|in|to|and|or|the|must|has|required|missing|ids?)\b)"
)
_QUOTE = r"(?:\\?[\"'])?"
# "tokens:" stands in most lines of an engine, and is none of these.
_TOKEN = tuple(f"token{after}" for after in "=: \"'\\")


@dataclass(frozen=True, slots=True)
class _Form:
    """How a secret is written: the group of a pattern that matched, and what its line contains."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]  # in lower case; a line without any is not searched


# The only form of several lines.
_PRIVATE_KEY = _Form(
    "private key",
    re.compile(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"((?:(?:\\[rn]|\s)*[A-Za-z0-9+/=]{8,})+)"
    ),
    ("private key",),
)
_OF_ONE_LINE = (
    _Form(
        "authorization header",
        re.compile(
            rf"(?i:(?<![\w-])(?:proxy-)?authorization{_QUOTE}\s*[:=]\s*{_QUOTE}"
            rf"(?:[a-z]+\s+)?+{_NO_VALUE})({_VALUE})"
        ),
        ("authorization",),
    ),
    _Form(
        "bearer token",
        re.compile(r"\b(?i:bearer)\s+(?=\S*[0-9A-Z])([A-Za-z0-9._~+/=-]{8,})"),
        ("bearer",),
    ),
    _Form(
        "basic authorization",
        re.compile(
            rf"\b(?i:basic)\s+(?=[A-Za-z0-9+/]*[0-9A-Z=])([A-Za-z0-9+/]{{8,}}={{0,2}})"
            rf"|(?i:auth){_QUOTE}\s*[:=]\s*{_QUOTE}([A-Za-z0-9+/]{{10,}}={{1,2}})"
        ),
        ("basic", "auth"),
    ),
    _Form(
        "password on a command line",
        re.compile(
            rf"(?<![\w-])(?:-u|--user|--proxy-user)[ =][^\s:\"']+:(?!\d+(?!\S))({_VALUE})"
            rf"|\bsshpass\s+-p\s*({_VALUE})|\bmysql\w*\s[^\n\"']*?-p(?!-)({_VALUE})"
        ),
        ("-u ", "--user", "--proxy-user", "sshpass", "mysql"),
    ),
    _Form(
        "cookie",
        re.compile(
            rf"(?i:(?<![\w-])(?:set-)?cookie2?{_QUOTE}\s*[:=]\s*{_QUOTE})"
            r"([^\s=\"'\\]+=[^\r\n\"'\\]+)"
        ),
        ("cookie",),
    ),
    _Form(
        "password in a URL",
        re.compile(rf"://[^\s/@\"'\\]*:{_NO_VALUE}([^\s/@\"'\\]+)@"),
        ("://",),
    ),
    _Form(
        "value of a sensitive name",
        re.compile(
            rf"(?i:(?<![A-Za-z0-9]){_IN_A_VOCABULARY}(?:{_NAMES}){_QUOTE}\s*(?:=>|[:=])\s*"
            rf"[\[(]?{_QUOTE}{_NO_VALUE})({_VALUE})"
        ),
        ("key", "secret", "pass", "pwd", "credential", "signature", "sid", "sig", *_TOKEN),
    ),
    _Form(
        "value of a sensitive option",
        re.compile(
            rf"(?i:(?<![\w-])--?(?:[a-z0-9]+[_-])*(?:{_NAMES}){_QUOTE}(?:\s*,\s*|\s+){_QUOTE}"
            rf"(?!-){_NO_VALUE})({_VALUE})"
        ),
        ("key", "secret", "pass", "pwd", "credential", *_TOKEN),
    ),
    _Form(
        "cloud key",
        re.compile(
            r"(?<![A-Za-z0-9])((?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}|GOOG[0-9A-Z]{12,}|"
            r"AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_.-]{16,})(?![A-Za-z0-9])"
        ),
        ("akia", "asia", "aroa", "aida", "goog", "aiza", "ya29."),
    ),
    _Form(
        "access token",
        re.compile(
            r"(?<![A-Za-z0-9])(hf_(?=[a-z]*[0-9A-Z])[A-Za-z0-9]{8,}|"
            r"sk-(?=[\w-]*\d)[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|"
            r"github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{16,})"
        ),
        (
            *("hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
            *("xox", "nvapi-"),
        ),
    ),
    _Form(
        "JSON web token",
        re.compile(r"(?<![A-Za-z0-9])(eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?)"),
        ("eyj",),
    ),
)


def secrets_in(text: str) -> Iterator[tuple[int, str]]:
    """Number (from 1) of every line with a secret, and the kind of one secret in it."""
    for match in _PRIVATE_KEY.pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, _PRIVATE_KEY.kind
    for number, line in enumerate(text.splitlines(), start=1):
        low = line.lower()
        for form in _OF_ONE_LINE:
            if any(hint in low for hint in form.hints) and _holds(form, line):
                yield number, form.kind
                break


def _holds(form: _Form, line: str) -> bool:
    found = (match[match.lastindex or 0] for match in form.pattern.finditer(line))
    return any(value.strip(";,.") != MASK for value in found)


def masked(text: str) -> str:
    """The text with the value of every secret replaced; what is no secret stays as it was."""
    text = _PRIVATE_KEY.pattern.sub(_without_value, text)
    return "".join(map(_masked_line, text.splitlines(keepends=True)))


def _masked_line(line: str) -> str:
    low = line.lower()
    for form in _OF_ONE_LINE:
        if any(hint in low for hint in form.hints):
            line = form.pattern.sub(_without_value, line)
    return line


def masked_json(value: Any) -> Any:
    """A JSON value with every secret in it replaced, also where the name is a key."""
    if isinstance(value, dict):
        return {key: _masked_under(key, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked_json(one) for one in value]
    return masked(value) if isinstance(value, str) else value


def _masked_under(key: str, value: Any) -> Any:
    if isinstance(value, str):
        named = f"{json.dumps(key)}: {json.dumps(value)}"
        secret = masked(named) != named and masked(value) == value
        return MASK if secret else masked(value)
    return masked_json(value)


def _without_value(match: re.Match[str]) -> str:
    begin, end = (place - match.start() for place in match.span(match.lastindex or 0))
    return match.group()[:begin] + MASK + match.group()[end:]
