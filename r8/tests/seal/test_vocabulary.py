"""What rules and queries ask for is in the vocabulary; what may name somebody is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from r8.seal.declared import EVENT_FACTS
from r8.seal.vocabulary import names_nobody
from r8.tests.seal.planted import NEEDLES

ROOT = Path(__file__).resolve().parents[3]
# A text that is compared: in SQL, or as a phase, an event or a counter in a rule.
_COMPARED = re.compile(
    r"(?:(?<![<>:!])= |IN \(|VALUES \()'([a-z][\w-]*)'|, '([a-z][\w-]*)'(?=[,)])"
    r"|\bevents?\(\"(\w+)\"|\bphase=\"(\w+)\"|_rows\(case, \"(\w+)\"|\.text\([\w.]+, \"(\w+)\""
)
# Names of metrics and of what a query itself makes; no run holds them.
_MADE = re.compile(r"metric\(|refuse|reason|mean|jain|r8_figures|predicted_|_over_|fraction|_ttft")


def _compared() -> set[str]:
    found: set[str] = set()
    for path in (*(ROOT / "data/queries").glob("*.sql"), *(ROOT / "r8/forensics").glob("*.py")):
        text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        for line in text.splitlines():
            if not _MADE.search(line):
                found |= {word for match in _COMPARED.finditer(line) for word in match.groups("")}
    return found - {""}


def test_every_word_a_rule_or_query_compares_travels() -> None:
    words = _compared()
    assert {"measure", "read_sectors", "nvme-head", "durable", "members", "readback"} <= words
    assert sorted(word for word in words if not names_nobody(word)) == []


@pytest.mark.parametrize("key", sorted(EVENT_FACTS))
def test_every_declared_fact_is_a_plain_key(key: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", key)


@pytest.mark.parametrize(
    "name", [name for kind in NEEDLES.values() for name in kind] + ["node-12", "gpu-07", "dead::1"]
)
def test_no_planted_name_is_a_word_of_r8(name: str) -> None:
    assert not names_nobody(name)


@pytest.mark.parametrize(
    "word",
    [
        *("loop0", "nvme0n1", "nvme0c1n1p2", "mlx5_0", "ens1f0np0", "eth0", "dm-3", "md127"),
        *("read_sectors", "load_1m", "ethtool.rx_vport_rdma_unicast_bytes", "step-1", "b", "w12"),
        *("vllm:prompt_tokens_total", "2.13.0+cpu", "0.28.0rc1", "3.25", "1234", "array-rdma"),
        *("nvme-head", "model-00001-of-00002.safetensors", "loop-xfs", "LMCache"),
    ],
)
def test_words_of_instruments_and_releases_travel(word: str) -> None:
    assert names_nobody(word)


@pytest.mark.parametrize(
    "word",
    [
        *("12345", "10.1.2.3", "1.2.3.4.5", "enx0c42a15e001f", "fc-v657", "acme-array"),
        *("array-10-20-30", "0x1f", "deadbeef", "a1:b2:c3", "node-10-20-30", "model-1-2-3"),
        *("storage-07", "gpu-0", "array-3.local"),
    ],
)
def test_longer_numbers_and_unknown_pieces_do_not(word: str) -> None:
    assert not names_nobody(word)
