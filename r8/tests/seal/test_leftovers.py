"""The second finder: forms of names and keys are seen, R8's own words and numbers are not."""

from __future__ import annotations

import json

import pytest

from r8.schema import TABLES, Pseudonymised
from r8.seal import declared
from r8.seal.leftovers import KINDS, left_in
from r8.tests.seal.planted import PHRASES

# Names that are ordinary words, or words in a row, have no form.
WITHOUT_FORM = {"user=svc_kvbench", "/data/acme-llm-70b-private/weights", "s3://acme-kv-bucket/p"}
WITHOUT_FORM |= {"/mnt/acme-lustre/models", "//smb-acme/share"}
DIGEST = "93e4a3ab289184d58cf89a6e62f689e9abefa7e850ff5d51a226d932e80b9aba"


@pytest.mark.parametrize(
    "phrase",
    [one for kind in PHRASES.values() for one in kind if one not in WITHOUT_FORM]
    + ["serial=210235980001234", "WWPN 21:00:00:24:ff:8a:1b:2c", "mail maria@acme.de", DIGEST]
    + ["gpu-07", "storage-7", "/home/login-3/x"],
)
def test_a_form_is_seen_in_text_and_in_json(phrase: str) -> None:
    assert list(left_in(f"Worker said {phrase} twice"))
    assert list(left_in(json.dumps({"facts": [{"path": json.dumps([phrase])}]})))
    assert list(left_in(json.dumps({phrase: 1})))


@pytest.mark.parametrize("phrase", sorted(WITHOUT_FORM))
def test_what_has_no_form_is_known_not_to_be_seen(phrase: str) -> None:
    assert list(left_in(phrase)) == []


@pytest.mark.parametrize(
    "text",
    [
        "(Worker pid=1234567) R8-PATCH read id=3 path=sync keys=12 segments=24 bytes=100663296",
        '{"begin_ns": 48496200768388, "bytes": 50331648, "memory_bytes": "25276510208"}',
        "vllm:e2e_request_latency_seconds_sum{text-3=word-9}",
        "r1-checkpoint-20261130T163129Z-b0-array-full-each-c4 in /tmp/word-12/array/xfs",
        "file-1@1@0@file-22@half@float.pt of host-3:/text-4, engine:b, b:word-3, nvme0c1n1p2",
        "model-00001-of-00002.safetensors step-1/rank-0 2.13.0+cpu x86_64 sha256 bfloat16 12:30",
        '{"each": "1207959552 + 1207959552"}',
        "127.0.0.1 ::1 0.0.0.0 /home/user-1/model /home/user-2...",
    ],
)
def test_words_and_numbers_of_r8_are_not(text: str) -> None:
    assert list(left_in(text)) == []


def test_every_kind_of_pseudonym_is_known_to_the_finder() -> None:
    columns = (column.travels for table in TABLES.values() for column in table.columns)
    made = (*columns, *declared.RUN.values())
    kinds = {one.kind for one in made if isinstance(one, Pseudonymised)}
    assert sorted(kinds - set(KINDS)) == []
    assert [list(left_in(f"{kind}-12")) for kind in KINDS] == [[]] * len(KINDS)


def test_a_digest_that_names_a_file_of_the_bundle_is_known() -> None:
    known = frozenset({DIGEST})
    assert list(left_in(f"module {DIGEST}, {DIGEST[:12]}", known)) == []
    assert [kind for kind, _ in left_in(f"module {DIGEST[:-1]}0", known)] == ["number"]
