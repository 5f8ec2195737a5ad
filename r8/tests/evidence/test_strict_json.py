from __future__ import annotations

import pytest

from r8.errors import EvidenceError
from r8.evidence.budgets import BUDGETS
from r8.evidence.strict_json import strict_json

DEPTH = BUDGETS.json_depth


def test_plain_json_is_read() -> None:
    text = '{"a": [1, -2.5, true, null, "\\u00e9"], "b": {"c": 9223372036854775807}}'
    wanted = {"a": [1, -2.5, True, None, "é"], "b": {"c": 2**63 - 1}}
    assert strict_json(text, what="x", where="here") == wanted
    assert strict_json(text.encode(), what="x", where="here") == wanted


def test_depth_is_allowed_up_to_its_budget() -> None:
    strict_json("[" * DEPTH + "]" * DEPTH, what="x", where="here")
    with pytest.raises(EvidenceError, match=f"json_depth = {DEPTH}"):
        strict_json("[" * (DEPTH + 1) + "]" * (DEPTH + 1), what="x", where="here")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "run.json is not JSON that R8 reads: Expecting"),
        ('{"a": 1, "b": 2, "a": 3}', "key 'a' is there twice"),
        ('{"x": {"a": 1, "a": 1}}', "key 'a' is there twice"),
        ("[NaN]", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("[1e999]", "infinite"),
        ("[9223372036854775808]", "more than 64 bits"),
        (f"[{'9' * 5000}]", "not JSON that R8 reads"),
        ('["\\ud800"]', "surrogates not allowed"),
        ('{"\\ud800": 1}', "surrogates not allowed"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deep"),
        (b"\xff\xfe{\x00}\x00", "can't decode"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ("[]" + " " * BUDGETS.json_bytes, f"json_bytes = {BUDGETS.json_bytes}"),
    ],
)
def test_what_two_readers_might_read_differently_is_refused(text: str | bytes, named: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        strict_json(text, what="run.json", where="there")
    assert named in caught.value.what
    assert caught.value.where == "there"
