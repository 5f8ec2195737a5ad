"""What each key of a plan may hold: a check of one value, and the words that say what is wanted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .profiles import PROFILES
from .token_generator import ID_DIGITS_MAX
from .trace_formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PHASES = ("probe", "populate", "flush", "rewarm", "measure", "warm", "control")
OPEN_LOOPS = ("constant", "poisson", "trace")
TURN_SHAPES = ("closed", "ramp", "soak")
SHAPES = ("burst", *TURN_SHAPES, *OPEN_LOOPS)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SESSION_END = 1 << 31
_VOCAB_END = 10**ID_DIGITS_MAX  # no vocabulary is near it
_LIMIT = 1e6  # larger seconds, rates and scales are mistakes


def _rule(holds: Callable[[Any], bool], wanted: str) -> Mapping[str, Any]:
    """The metadata of a plan's field."""
    return {"holds": holds, "wanted": wanted}


def _or_none(holds: Callable[[Any], bool], wanted: str) -> Mapping[str, Any]:
    return _rule(lambda value: value is None or holds(value), wanted)


def _one_of(*words: str) -> Mapping[str, Any]:
    return _rule(lambda value: value in words, f"one of {', '.join(words)}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _positive_whole(value: Any) -> bool:
    return _whole(value) and value > 0


def _positive(value: Any) -> bool:
    return _number(value) and 0 < value < _LIMIT


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _url(value: Any) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        return False


def _proxy(value: Any) -> bool:
    return _url(value) and urlsplit(value).scheme == "http" and "@" not in value


def _pair(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - a pair
    return listed and all(map(_whole, value))


def _vocabulary(value: Any) -> bool:
    return _pair(value) and bool(value[1] - value[0] > 1 and value[1] <= _VOCAB_END)


def _sessions(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and bool(value) and all(map(_whole, value))
    return numbers and max(value) < _SESSION_END


def _instances(value: Any) -> bool:
    return isinstance(value, dict) and all(_name(k) and _url(v) for k, v in value.items())


WHOLE = _rule(_whole, "a whole number, 0 or more")
POSITIVE_WHOLE = _rule(_positive_whole, "a whole number, 1 or more")
NOT_NEGATIVE = _rule(lambda value: _number(value) and value >= 0, "a number, 0 or more")
TIMEOUT = _rule(_positive, "seconds above 0 for a whole request, from its first byte sent")
RAMP = _or_none(_positive, "seconds above 0 until `concurrency` is reached")
DURATION = _or_none(_positive, "seconds above 0 in which requests are sent")
SLICE = _rule(_positive, "seconds above 0 of one row of counts")
SWITCH = _rule(lambda value: isinstance(value, bool), "true or false")
PHASE = _one_of(*PHASES)
SHAPE = _one_of(*SHAPES)
ENDPOINT = _one_of("completions", "chat")
PROFILE = _rule(
    lambda value: value in PROFILES,
    f"whose keys beyond OpenAI's the server takes: one of {', '.join(PROFILES)}",
)
CONNECT = _one_of("before", "inside")
INSTANCE = _rule(_name, "a name of letters, digits, . _ -")
BASE_URL = _rule(_url, "http://host:port or https://host:port")
MODEL = _rule(_text, "the served model's name")
SESSIONS = _rule(_sessions, f"a list of session numbers, 0 or more, below {_SESSION_END}")
VOCAB = _rule(_vocabulary, "[low, high) token ids with at least two between them")
EXTRA_BODY = _rule(lambda value: isinstance(value, dict), "a JSON object")
API_KEY_ENV = _or_none(_text, "the environment variable that holds the API key")
API_KEY_FILE = _or_none(_text, "a file that holds nothing but the API key")
MORE_INSTANCES = _rule(_instances, '{"name": "http://host:port", ..}')
PROXY = _or_none(_proxy, "http://host:port of a proxy")
CA_FILE = _or_none(_text, "a PEM file of certificate authorities")
RATE = _or_none(_positive, "requests a second, above 0")
TRACE = _or_none(_text, "a trace file: JSON lines of Mooncake or Bailian, CSV of Azure or BurstGPT")
TRACE_FORMAT = _or_none(
    lambda value: value in FORMATS,
    f"the trace's format, which says its unit of time and its block size: {', '.join(FORMATS)}",
)
TIME_SCALE = _rule(_positive, "a number above 0; 0.5 replays twice as fast")
BLOCK_TOKENS = _or_none(
    _positive_whole, "tokens that one hash id stands for, where they are not those of the format"
)
TURN_TOKENS = _or_none(_positive_whole, "new tokens of each further turn")
RATIO = _rule(lambda value: _number(value) and 0 <= value < 1, "0 or more, below 1")
SHARD = _rule(
    lambda value: _pair(value) and value[0] < value[1], "[index, count], index below count"
)
