"""Pseudonyms: every name of somebody gets one in the whole bundle, and R8's own words stay.

The list of what stays is `r8.seal.vocabulary`; whatever is not on it is a name. Which pseudonym a
name gets depends on the order of its first occurrence alone, and no table of who was who is kept.

Cannot find: a name that is itself one of R8's words, such as a user called `model`. Name it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.schema import Public
from r8.seal.declared import EVENT_FACTS
from r8.seal.vocabulary import WORDS, names_nobody
from r8.sensitive import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from r8.schema import Travels

_BETWEEN = r"\s\"'`(){}\[\]<>,;=|&?!#*@/\\"
# Numbers of any length that R8's rules read beside these names; a name; what stands around it.
_PARTS = re.compile(
    r"(?P<kept>(?<![\w.-])(?:pid|bytes|segment_bytes)=\d{1,15}(?![\w.:-]))"
    rf"|(?P<user>(?:(?<=/home/)|(?<=/Users/))[^{_BETWEEN}]+)"
    rf"|(?P<word>[^{_BETWEEN}]+)"
)
_AROUND = re.compile(r"([!-/:-@\[-`{-~]*)(.*?)([!-/:-@\[-`{-~]*)", re.DOTALL)
_PLACE = re.compile(r"(b\d{1,9}-)(.+)(-c\d{1,9})")
_RUN = re.compile(r"(r8-)?(.+)-(b\d{1,9}-.+-c\d{1,9})(\.life|\.lifetime)?")
_CAMPAIGN = re.compile(r"(.+)-(\d{8}T\d{6}Z)((?:-r\d{1,3})?)")
_ALSO = re.compile(r"name-\d+")
_PROCESS = re.compile(r"([^:]+)(:\d{1,10}:\d{1,20})")
# Kinds whose words are always names; these alone are nobody's.
_ALWAYS = frozenset({"host", "user", "site", "output"})
_NOBODY = frozenset({"", "-", "local", "localhost", "loopback", "rehearsal", MASK})
# A number of more digits, under a name nobody declared, may be a serial.
_COUNT_MAX = 9999


@dataclass(slots=True, kw_only=True)
class Names:
    """Names found so far, each with what stands for it from now on.

    `known` are further words that stay: names of arms and scenarios that claims speak of. `also`
    are words to be replaced wherever they stand.
    """

    known: frozenset[str]
    also: tuple[str, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    undeclared_facts: int = 0
    _whole: dict[tuple[str, str], str] = field(default_factory=dict)

    def hide(self, text: str, travels: Travels) -> str:
        """A text of a run as it may travel."""
        if isinstance(travels, Public):
            return text if travels.has(text) else self._sentence(text, "word")
        if travels.by == "facts":
            return self._facts(text)
        if travels.by == "word":
            return self._sentence(text, travels.kind)
        # Whole texts are no words: what a model answered may be the name of an engine.
        key = (travels.kind, text)
        if key not in self._whole:
            make = self._longer_id if travels.by == "id" else self._numbered
            self._whole[key] = make(*key)
        return self._whole[key]

    def keep(self, words: Iterable[str]) -> None:
        """Let these words stand: digests of the patch, which its own files have."""
        self.known |= frozenset(words)

    def _sentence(self, text: str, kind: str) -> str:
        for word in (one for one in self.also if " " in one):
            text = re.sub(re.escape(word), self._named, text, flags=re.IGNORECASE)
        return _PARTS.sub(lambda match: self._part(match, kind), text)

    def _named(self, match: re.Match[str]) -> str:
        """A word of `also`, apart from what stands around it."""
        return f" {self._new('name', match.group().lower())} "

    def _part(self, match: re.Match[str], kind: str) -> str:
        if match["kept"]:
            return match["kept"]
        kind = "user" if match["user"] else kind
        around = _AROUND.fullmatch(match.group())
        if around is None:
            return self._new(kind, match.group())
        before, word, after = around.groups()
        return before + (self._word(word, kind) if word else "") + after

    def _word(self, word: str, kind: str) -> str:
        """A word that stays, or what stands for it or for the names inside it."""
        if self._stays(word, kind):
            return word
        if word in self.words:
            return self.words[word]
        return self._made(word) or self._after_colon(word, kind) or self._new(kind, word)

    def _made(self, word: str) -> str | None:
        """An id that R8 made of names, or the device of a process, with these names replaced."""
        if run := _RUN.fullmatch(word):
            place = self._word(run[3], "arm")
            return f"{run[1] or ''}{self._word(run[2], 'campaign')}-{place}{run[4] or ''}"
        if place_ := _PLACE.fullmatch(word):
            return place_[1] + self._word(place_[2], "arm") + place_[3]
        if campaign := _CAMPAIGN.fullmatch(word):
            return f"{self._word(campaign[1], 'scenario')}-{campaign[2]}{campaign[3]}"
        if process := _PROCESS.fullmatch(word):
            return self._word(process[1], "instance") + process[2]
        return None

    def _after_colon(self, word: str, kind: str) -> str | None:
        """One of R8's words and a name, such as `engine:b`."""
        head, _, rest = word.partition(":")
        if head.lower() not in WORDS or not rest or rest.startswith(":"):
            return None
        return f"{head}:{self._word(rest, kind)}"

    def _stays(self, word: str, kind: str) -> bool:
        if word in _NOBODY or (self.also and _ALSO.fullmatch(word)):
            return True
        if any(one.lower() in word.lower() for one in self.also):
            return False
        if kind in _ALWAYS or (word in self.words and word.lower() not in WORDS):
            return False
        return word in self.known or names_nobody(word)

    def _longer_id(self, kind: str, text: str) -> str:
        """An id; the pseudonym of one we know that begins it, up to a hyphen, begins it as well."""
        place = text.rfind("-")
        while place > 0:
            if (kind, text[:place]) in self._whole:
                rest = (self._word(one, kind) for one in text[place + 1 :].split("-"))
                return "-".join((self._whole[kind, text[:place]], *rest))
            place = text.rfind("-", 0, place)
        return self._numbered(kind, text)

    def _facts(self, detail: str) -> str:
        """The declared facts of an event, numbers and truth values as they are."""
        try:
            facts = json.loads(detail)
        except ValueError:
            facts = None
        if not isinstance(facts, dict):
            return self._numbered("word", detail)
        declared = {key: self._value(one) for key, one in facts.items() if key in EVENT_FACTS}
        self.undeclared_facts += len(facts) - len(declared)
        return json.dumps(declared, sort_keys=True)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self._sentence(key, "word"): self._value(one)
                for key, one in value.items()
                if names_nobody(key) or not _may_be_serial(one)
            }
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return self._sentence(value, "word") if isinstance(value, str) else value

    def _new(self, kind: str, word: str) -> str:
        if word not in self.words:
            self.words[word] = self._numbered(kind, word)
        return self.words[word]

    def _numbered(self, kind: str, _text: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind}-{self.counts[kind]}"


def _may_be_serial(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) > _COUNT_MAX
