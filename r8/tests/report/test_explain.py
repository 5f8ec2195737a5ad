"""What a rule is for: complete in both languages, and readable on a terminal."""

from __future__ import annotations

import pytest

from r8.audit.rules import RULES as AUDIT_RULES
from r8.errors import UsageError
from r8.forensics.rules import RULES
from r8.report.explain import PARTS, explain, explained, title
from r8.report.words import LANGUAGES, render_part

EVERY = (*RULES, *AUDIT_RULES)


def test_explain_gives_reason_inputs_and_threshold_of_every_rule() -> None:
    for rule in EVERY:
        text = explain(rule.rule_id.lower())
        assert text.startswith(f"{rule.rule_id}  {title(rule)}")
        scope = ("Scope",) if rule in RULES else ()
        for part in ("Why", "Reads", "Threshold", *scope, "Answers"):
            assert f"\n{part} " in text
        assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_has_a_title_and_words_in_each_language(language: str) -> None:
    for rule in EVERY:
        words = [title(rule, language)]
        words += [render_part(rule.entry, part, rule.thresholds, language) for part in PARTS]
        assert all(words), rule.rule_id
        assert len({title(one, language) for one in EVERY}) == len(EVERY)


def test_a_threshold_is_named_with_its_number() -> None:
    assert "below 1% of the cell's KV bytes" in explain("C5")
    assert "the larger of 2% and 32 MiB above it" in " ".join(explain("C4").split())
    assert "device_read_bytes" in explain("C4", "zh"), "no name is broken"
    assert explained("c4")["thresholds"] == {
        "tolerance_share": 0.02,
        "floor_share": 0.98,
        "excess_bytes": 32 << 20,
        "wire_share": 0.01,
    }


def test_the_audit_s_constants_are_named_with_their_numbers() -> None:
    assert "0.5% either way" in explain("A5")
    assert explained("a5") == {
        "rule_id": "A5",
        "message": "rule-a5",
        "thresholds": {"tolerance_share": 0.005},
    }
    assert "p90 needs 10, p99 needs 100" in explain("A7")
    assert "p99 需 100" in explain("A7", "zh")
    assert "OFF" in explain("A1")
    assert "refuted" in explain("C1")


def test_a_rule_of_the_block_says_so() -> None:
    assert "speaks for the block" in explain("N2")
    assert "in every run a verdict rests on" in explain("C1")
    assert [explained(one)["of_block"] for one in ("n1", "n2", "q1")] == [True, True, False]


def test_explain_names_the_rules_there_are() -> None:
    with pytest.raises(UsageError, match="choose one of C1, C2"):
        explain("C12")
