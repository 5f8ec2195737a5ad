"""What the schema says a column may hold is what the instruments write: their own constants."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from load_client.calibration import limit, measure
from load_client.record import capture
from load_client.stream import finish
from load_client.workload import profiles
from probes.cache import pagecache
from probes.catalogue import PROBES
from r8 import schema
from r8.evidence import engine_words
from r8.lab.instruments import readers
from r8.lab.site.arms import Plan
from r8.model import RequestOutcome
from r8.schema import TABLES

ROOT = Path(__file__).resolve().parents[2]


def words_set(source: str, *, name: str) -> set[str]:
    """Texts given to `name` by assignment, keyword or dict key."""
    return {
        value.value
        for node in ast.walk(ast.parse(source))
        for value in _given(node, name)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def _given(node: ast.AST, name: str) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        named = any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
        value = node.value
        if isinstance(value, ast.IfExp):
            return [value.body, value.orelse] if named else []
        return [value] if named else []
    if isinstance(node, ast.keyword) and node.arg == name:
        return [node.value]
    if isinstance(node, ast.Dict):
        return [
            value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == name
        ]
    return []


def test_stamps_are_those_the_load_client_names() -> None:
    made = [
        capture.stamp_of(clock, way)
        for clock in (capture.KERNEL, capture.USER)
        for way in capture.WAYS
    ]
    assert list(schema.STAMPS) == made


def test_calibrations_have_the_names_their_instruments_give() -> None:
    names = (readers.CEILING, readers.SERIAL, measure.ROW_NAME, limit.ROW_NAME)
    assert names == schema.CALIBRATION_NAMES
    tools = (readers.FIO, *readers.OWN_TOOLS.values(), *measure.TOOLS)
    assert tools == schema.CALIBRATION_TOOLS


def test_residency_is_asked_by_the_methods_of_the_probe() -> None:
    assert tuple(pagecache.METHODS) == schema.RESIDENCY_METHODS


def test_kinds_of_stream_events_are_those_the_client_tells_apart() -> None:
    source = (ROOT / "load_client" / "stream" / "deltas.py").read_text()
    found = words_set(source, name="kind") | words_set(source, name="fallback")
    assert found == set(schema.CHUNK_KINDS)


def test_finish_reasons_are_those_the_client_understands() -> None:
    assert tuple(finish.MEANING) == schema.FINISH_REASONS


def test_outcomes_of_answers_are_those_of_the_model() -> None:
    source = (ROOT / "load_client" / "record" / "rows.py").read_text()
    returned = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Return)]
    first = [one.elts[0] for one in returned if isinstance(one, ast.Tuple)]
    made = {one.value for one in first if isinstance(one, ast.Constant)}
    assert made <= set(RequestOutcome)
    assert {"finish_failed", "finish_unknown", "ok", "cut"} <= made


def test_a_site_file_may_name_every_profile_of_the_client() -> None:
    assert get_args(get_type_hints(Plan)["profile"]) == tuple(profiles.PROFILES)


def test_names_of_probes_are_those_of_the_catalogue() -> None:
    # iostat runs beside them, and the recorder writes rows of its own.
    made = {one.name for one in PROBES} | {"iostat", "self"}
    assert made == set(schema.PROBE_NAMES)


def test_kinds_of_log_lines_are_those_the_parser_gives() -> None:
    found = words_set((ROOT / "r8" / "evidence" / "engine_log.py").read_text(), name="kind")
    found |= {*engine_words.KINDS, *engine_words.UNJUDGED.values()}
    assert found == set(schema.ENGINE_LOG_KINDS)


def test_a_new_word_of_an_instrument_would_be_seen() -> None:
    source = "kind = 'x' if y else 'z'\nf(kind='w')\n{'kind': 'v'}\n"
    assert words_set(source, name="kind") == {"x", "z", "w", "v"}


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("requests", "stamp", schema.STAMPS),
        ("chunks", "kind", schema.CHUNK_KINDS),
        ("residency", "method", schema.RESIDENCY_METHODS),
        ("engine_log", "kind", schema.ENGINE_LOG_KINDS),
        ("calibration", "name", schema.CALIBRATION_NAMES),
        ("calibration", "tool", schema.CALIBRATION_TOOLS),
    ],
)
def test_the_dictionary_and_the_parquet_metadata_list_every_word(
    table: str, column: str, words: tuple[str, ...]
) -> None:
    field = TABLES[table].arrow().field(column)
    meaning = (field.metadata or {})[b"meaning"].decode()
    dictionary = (ROOT / "data" / "queries" / "DICTIONARY.md").read_text()
    section = dictionary.partition(f"### `{table}`")[2].partition("\n### ")[0]
    for word in words:
        assert word in meaning
        assert word in section
