"""`r8 audit`, `r8 checklist` and `r8 explain` as an auditor types them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from r8.audit.rules import RULES, audit
from r8.claims.ledger import load_ledger
from r8.cli import main as cli
from r8.errors import UsageError
from r8.report.audit import as_markdown, as_text, sentence
from r8.report.words import LANGUAGES
from r8.tests.support.synthetic_ledger import clean

ROOT = Path(__file__).resolve().parents[3]
# Generous: the machine may be busy. The audit itself takes a small part of it.
MAX_CPU_S = 2.0


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


def test_the_audit_of_the_shipped_ledger_takes_less_than_two_seconds_of_cpu() -> None:
    began = time.process_time()
    audit(load_ledger())
    assert time.process_time() - began < MAX_CPU_S


def test_audit_prints_findings_leads_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "audit")
    assert code == 0
    assert "A1  OFF" in out
    assert "lead, same report: r2.recompute.c16.ttft_p90 / r2.array.c16.ttft_p90" in out
    assert "printed in 004_5bf6fad3852d0954.txt" in out
    assert "30 off, 9 undetermined" in out.splitlines()[-1]


def test_audit_of_one_report_touches_only_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "audit", "--report", "R9", "--all")
    assert code == 0
    assert "r9.load.32B.gain" in out
    assert "r2." not in out


def test_audit_of_no_report_is_one_line_and_exit_four(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "audit", "--report", "R99")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert "R99" in err


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda made: made.rows["s.gain.c16"].update(formula="nothing / here"), "no figure"),
        (lambda made: made.rows["s.text"].update(formula="s.text"), "cycle"),
        (lambda made: made.rows["s.gain.c16"].update(unit="s"), "unit mismatch"),
        (lambda made: made.rows["s.text"].update(unit="parsec"), "not one R8 knows"),
    ],
)
def test_a_bad_ledger_is_one_line_and_exit_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: object, says: str
) -> None:
    made = clean(1)
    fault(made)  # type: ignore[operator]
    with pytest.raises(UsageError):
        made.write(tmp_path)
    code, out, err = run(capsys, "audit", "--ledger", str(tmp_path))
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert says in err


def test_a_ledger_of_ones_own_is_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean(3).write(tmp_path)
    code, out, _ = run(capsys, "audit", "--ledger", str(tmp_path))
    assert code == 0
    assert "0 off, 0 undetermined" in out


def test_both_languages_hold_the_same_numbers() -> None:
    found = audit(load_ledger())
    for one in found:
        # What it is about is told in words of its own: 480B is 4800 亿.
        bare = replace(one, relation=None)
        english, chinese = (sentence(bare, language) for language in LANGUAGES)
        assert english != chinese
        assert numbers(english) == numbers(chinese), one
    for render in (as_text, as_markdown):
        texts = [render(found, language, everything=True) for language in LANGUAGES]
        assert len(texts[0].splitlines()) == len(texts[1].splitlines())


def test_names_of_another_ledger_are_words_in_markdown() -> None:
    (first, *_) = audit(load_ledger())
    found = [replace(first, figures=("`<script>` **x**\n# PASS",))]
    text = as_markdown(found, "en", everything=True)
    assert "\n# PASS" not in text
    assert r"`\x60\<script>\x60 \*\*x\*\*\n# PASS`" in text


def test_json_holds_the_numbers_and_ids_of_every_finding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = audit(load_ledger())
    document = json.loads(run(capsys, "audit", "--json")[1])
    assert document["format"] == 2
    for one, row in zip(found, document["findings"], strict=True):
        assert (row["rule"], tuple(row["figures"])) == (one.rule_id, one.figures)
        check = row["check"]
        assert check["answer"] == one.answer
        assert (check["measured"], check["message"]) == (one.check.measured, one.check.message)
        assert check["facts"] == dict(one.check.facts)
    (size,) = (row for row in document["findings"] if row["figures"] == ["r2.session.kv"])
    assert size["relation"] == "size"
    assert (size["check"]["op"], size["check"]["limit"]) == ("<=", 0.005)
    # 62 layers, 8 heads, 128 values of 2 bytes, K and V, 30208 tokens against 7.155e9 bytes.
    true = 2 * 62 * 8 * 128 * 2 * 30208
    assert size["check"]["measured"] == pytest.approx(true / 7.155e9 - 1)


def test_markdown_has_a_section_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "audit", "--md", "--lang", "zh")
    for rule in RULES:
        assert f"## {rule.rule_id} " in out


def test_explain_knows_rules_of_the_audit_and_of_the_certificate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "One quantity has one value" in run(capsys, "explain", "A3")[1]
    assert run(capsys, "explain", "C4")[0] == 0
    assert run(capsys, "explain", "A99")[0] == 4
    assert "同一个量" in run(capsys, "explain", "a3", "--lang", "zh")[1]


def test_the_audit_runs_without_site_packages_of_the_judge() -> None:
    """The arithmetic itself needs the standard library only: an auditor can read all of it."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from r8.claims.ledger import load_ledger\n"
        "from r8.audit.rules import audit\n"
        "print(len(audit(load_ledger())))\n"
        "assert not {'duckdb', 'pyarrow', 'scipy', 'numpy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) > 200
