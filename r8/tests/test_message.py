"""Messages and checks: one function makes every answer; a reason reads back as written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r8.message import (
    Answer,
    Check,
    Fact,
    Limit,
    Message,
    Op,
    answer_of,
    answer_of_all,
    compared,
    missing,
    not_applicable,
    parse_reason,
    spelled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

HELD, REFUTED, UNKNOWN = Answer.HELD, Answer.REFUTED, Answer.UNKNOWN


@pytest.mark.parametrize(
    ("op", "limit", "below", "at", "above"),
    [
        ("==", 10, REFUTED, HELD, REFUTED),
        ("!=", 10, HELD, REFUTED, HELD),
        ("<=", 10, HELD, HELD, REFUTED),
        ("<", 10, HELD, REFUTED, REFUTED),
        (">=", 10, REFUTED, HELD, HELD),
        (">", 10, REFUTED, REFUTED, HELD),
    ],
)
def test_an_answer_just_below_at_and_just_above_the_limit(
    op: Op, limit: int, below: Answer, at: Answer, above: Answer
) -> None:
    assert [answer_of(one, op, limit) for one in (9, 10, 11)] == [below, at, above]
    assert answer_of(None, op, limit) is UNKNOWN
    assert answer_of(10, op, None) is UNKNOWN
    assert answer_of(float("nan"), op, limit) is UNKNOWN


@pytest.mark.parametrize(
    ("measured", "answer"),
    [(0.97, REFUTED), (0.98, HELD), (1.0, HELD), (1.02, HELD), (1.03, REFUTED), (None, UNKNOWN)],
)
def test_both_ends_of_a_range_are_allowed(measured: float | None, answer: Answer) -> None:
    assert answer_of(measured, "within", (1 - 0.02, 1 + 0.02)) is answer


@pytest.mark.parametrize(
    ("measured", "op", "limit", "answer"),
    [
        ("live", "in", ("live", "up"), HELD),
        ("down", "in", ("live", "up"), REFUTED),
        (None, "in", ("live", "up"), UNKNOWN),
        ("none", "==", "none", HELD),
        ("LMCache", "==", "none", REFUTED),
        (0, "==", False, REFUTED),
        (False, "==", False, HELD),
        (True, "!=", 1, HELD),
        (5, "within", (None, 7), UNKNOWN),
        ("something", "known", None, HELD),
        (None, "known", None, UNKNOWN),
        (None, "n/a", None, Answer.NOT_APPLICABLE),
    ],
)
def test_answers_of_words_switches_and_absence(
    measured: Fact, op: Op, limit: Limit, answer: Answer
) -> None:
    assert answer_of(measured, op, limit) is answer


@pytest.mark.parametrize(("op", "limit"), [("<=", "ten"), ("within", 10), ("in", "live")])
def test_a_comparison_that_makes_no_sense_is_refused(op: Op, limit: Limit) -> None:
    with pytest.raises(TypeError, match="not a"):
        answer_of(9, op, limit)


def test_words_are_not_ordered() -> None:
    with pytest.raises(TypeError, match="not a number to compare: 'nine'"):
        answer_of("nine", "<=", 10)


def test_a_check_computes_its_answer_and_takes_none() -> None:
    check = Check(quantity="x", measured=2, op="<=", limit=1, message="c0-x", facts={"n": 3})
    assert check.answer is REFUTED
    assert asdict(check) == {
        "quantity": "x",
        "measured": 2,
        "op": "<=",
        "limit": 1,
        "unit": "",
        "message": "c0-x",
        "facts": {"n": 3},
        "answer": "refuted",
    }
    assert compared("x", (2, "<=", 1), "c0-x", facts={"n": 3}) == check
    with pytest.raises(TypeError, match="answer"):
        Check(quantity="x", measured=2, op="<=", limit=1, message="m", answer=HELD)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("answers", "together"),
    [
        ([], UNKNOWN),
        ([HELD], HELD),
        ([Answer.NOT_APPLICABLE], Answer.NOT_APPLICABLE),
        ([Answer.NOT_APPLICABLE, HELD], HELD),
        ([HELD, UNKNOWN], UNKNOWN),
        ([UNKNOWN, HELD, REFUTED], REFUTED),
    ],
)
def test_of_several_answers_the_gravest_counts(answers: list[Answer], together: Answer) -> None:
    made = {
        HELD: compared("x", (1, "==", 1), "m"),
        REFUTED: compared("x", (2, "==", 1), "m"),
        UNKNOWN: missing("x", "m"),
        Answer.NOT_APPLICABLE: not_applicable("x", "m"),
    }
    assert answer_of_all(made[one] for one in answers) is together


def test_a_check_is_written_in_symbols() -> None:
    assert str(compared("n", (2, "<=", 1), "m")) == "n: 2 <= 1"
    assert str(compared("n", (2, "within", (1, 3)), "m")) == "n: 2 within 1, 3"
    assert str(missing("n", "gone")) == "n: unknown (gone)"


def test_missing_evidence_is_unknown_and_no_subject_does_not_apply() -> None:
    gone = missing("device_read_bytes", "c0-silent", device="loop0")
    assert (gone.answer, gone.measured, gone.facts) == (UNKNOWN, None, {"device": "loop0"})
    assert not_applicable("kv", "c0-none").answer is Answer.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("requests_without_lookup n=2 of=16", {"n": 2, "of": 16}),
        ("no_window", {}),
        (
            'late device="nvme 0" share=0.5 seen=false',
            {"device": "nvme 0", "share": 0.5, "seen": 0},
        ),
        ('said words="""never"", it said" n="7"', {"words": '"never", it said', "n": "7"}),
        ("gone size=null arm=array-rdma", {"size": None, "arm": "array-rdma"}),
    ],
)
def test_a_reason_is_an_id_and_its_facts(text: str, facts: Mapping[str, Fact]) -> None:
    message = parse_reason(text)
    assert (message.id, message.facts) == (text.partition(" ")[0], facts)
    assert spelled(message) == text


@pytest.mark.parametrize(
    "text", ["", "two words", "no_end n=", 'x n="open', "x  n=1", "x n=1 ", "7 n=1", "x n=1 and"]
)
def test_a_reason_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a reason"):
        parse_reason(text)


FACTS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)
)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True), FACTS, max_size=4))
def test_every_message_reads_back_as_it_was_spelled(facts: dict[str, Fact]) -> None:
    message = Message(id="some-id", facts=facts)
    found = parse_reason(spelled(message))
    assert found == message
    assert [type(one) for one in found.facts.values()] == [type(one) for one in facts.values()]


def test_an_id_is_one_word() -> None:
    with pytest.raises(ValueError, match="a message id is a word"):
        Message(id="no such id")
