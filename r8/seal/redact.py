"""Taking names out of runs before they are sealed: hosts, users, addresses, serials.

Every name gets one pseudonym in the whole bundle (`host-1`, `address-2`), so joins and counts stay
what they were; no table of who was who is kept. Numbers, instants and the model's own words
(`output_text`) are not touched. The result is a run directory of its own, with its own manifest;
the seal records what was done and the digests of the manifests that were left behind.

Cannot find: a name that looks like an ordinary word and stands only in a free text. Name it.
"""

from __future__ import annotations

import gzip
import ipaddress
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from r8.evidence.journal import RUN_FILE
from r8.evidence.layout import ROW_GROUP_ROWS, open_writer
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from r8.evidence.reader import Evidence

KEPT_COLUMNS = frozenset({"run_id", "request_id", "output_text"})
# Names of this machine for itself say nothing about whose it is.
_COMMON = frozenset({"", "-", "local", "localhost", "root", "runner", "ubuntu", "user", "none"})
_HOST_KEYS = ("name", "hostname", "nodename", "fqdn", "address")
_SERIAL_KEYS = (
    "serial|serial_number|wwid|wwn|nguid|eui64|eui|uuid|guid|boot_id|machine_id|hostid|hostnqn|"
    "subnqn|nqn"
)
_IPV4 = re.compile(r"(?<![\w.=])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_SERIAL = re.compile(rf"(?i)\b(?:{_SERIAL_KEYS})\b[\"']?\s*[:=]\s*[\"']?([\w.:/-]{{4,}})")
_SERIAL_FORM = re.compile(r"\bnqn\.\d{4}-\d\d\.[\w.:-]+|\b(?:eui|naa|nvme)\.[0-9a-fA-F]{12,}\b")
_USER = re.compile(r"/(?:home|Users)/([\w.-]+)")
_SECRET_COUNTER = re.compile(rf"(?i)(?:^|_)(?:{_SERIAL_KEYS})$")
_BATCH_ROWS = 100_000


@dataclass(slots=True)
class Pseudonyms:
    """Names found so far, each with what stands for it from now on."""

    words: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    _pattern: re.Pattern[str] | None = None

    def add(self, kind: str, word: str) -> None:
        """Give a word its pseudonym, unless it has one or is nobody's name."""
        if word.lower() in _COMMON or word in self.words:
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.words[word] = f"{kind}-{self.counts[kind]}"
        self._pattern = None

    def hide(self, text: str) -> str:
        """The text with every known name replaced."""
        if not self.words:
            return text
        if self._pattern is None:
            longest_first = sorted(self.words, key=lambda word: (-len(word), word))
            words = "|".join(re.escape(word) for word in longest_first)
            self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")
        return self._pattern.sub(lambda match: self.words[match.group()], text)


def find_names(evidences: Iterable[Evidence], also: Iterable[str]) -> Pseudonyms:
    """Every name in these runs, in an order that depends on their content alone."""
    found = Pseudonyms()
    for word in also:
        found.add("name", word)
    for evidence in evidences:
        for key in _HOST_KEYS:
            found.add("host", evidence.run.host.get(key, ""))
        found.add("serial", evidence.run.host.get("boot_id", ""))
        _find_in_tables(evidence, found)
        for path in _texts_of(evidence).values():
            _find_in_text(_read_text(path), found)
    return found


def redact(evidence: Evidence, target: Path, names: Pseudonyms) -> None:
    """Write the run anew into `target`, an empty directory named by its run id."""
    for name in TABLES:
        _write_table(evidence, name, target, names)
    for name, path in _texts_of(evidence).items():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = names.hide(_read_text(path)).encode("utf-8", errors="surrogateescape")
        copy.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    (target / MANIFEST).write_text(manifest_text(target))


def names_left(directory: Path) -> list[tuple[str, str]]:
    """Addresses that still stand in the text files of a run, with their file; for the verifier."""
    left: list[tuple[str, str]] = []
    for path in _text_files(directory):
        found = Pseudonyms()
        _find_addresses(_read_text(path), found)
        left += [(word, path.relative_to(directory).as_posix()) for word in found.words]
    return left


def _texts_of(evidence: Evidence) -> dict[str, Path]:
    """Every file of a run that is no table, by its name; run.json as it was read."""
    found = {one.relative_to(evidence.path).as_posix(): one for one in _text_files(evidence.path)}
    return found | {RUN_FILE: evidence.tables / RUN_FILE}


def _text_files(directory: Path) -> list[Path]:
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".parquet" and path.name != MANIFEST
    )


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode("utf-8", errors="surrogateescape")


def _find_in_tables(evidence: Evidence, found: Pseudonyms) -> None:
    for name, table in TABLES.items():
        if "host" in table.arrow().names:
            for batch in _batches(evidence, name, ["host"]):
                for host in batch.column("host").unique().to_pylist():
                    found.add("host", str(host))
    for batch in _batches(evidence, "probes", ["counter", "text"]):
        rows = (batch.column(name).to_pylist() for name in ("counter", "text"))
        for counter, text in zip(*rows, strict=True):
            if text and _SECRET_COUNTER.search(counter):
                found.add("serial", text)
    for name in TABLES:
        for text in _strings(evidence, name):
            _find_in_text(text, found)


def _batches(evidence: Evidence, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(evidence.table_path(table)) as file:
        yield from file.iter_batches(_BATCH_ROWS, columns=columns)


def _strings(evidence: Evidence, table: str) -> Iterator[str]:
    columns = [column.name for column in _string_columns(table)]
    for batch in _batches(evidence, table, columns):
        for name in columns:
            yield from (text for text in batch.column(name).unique().to_pylist() if text)


def _string_columns(table: str) -> list[Any]:
    return [
        column
        for column in TABLES[table].arrow()
        if pa.types.is_string(column.type) and column.name not in KEPT_COLUMNS
    ]


def _find_in_text(text: str, found: Pseudonyms) -> None:
    for match in _SERIAL.finditer(text):
        found.add("serial", match.group(1))
    for match in _SERIAL_FORM.finditer(text):
        found.add("serial", match.group())
    for match in _USER.finditer(text):
        found.add("user", match.group(1))
    _find_addresses(text, found)


def _find_addresses(text: str, found: Pseudonyms) -> None:
    for match in _MAC.finditer(text):
        found.add("mac", match.group())
    for match in (*_IPV4.finditer(text), *_IPV6.finditer(text)):
        if _is_somebody(match.group()):
            found.add("address", match.group())


def _is_somebody(text: str) -> bool:
    """Whether it is an address of a machine, not loopback, a mask, or a version number."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or text.startswith("255."))


def _write_table(evidence: Evidence, name: str, target: Path, names: Pseudonyms) -> None:
    schema = TABLES[name].arrow()
    hidden = {column.name for column in _string_columns(name)}
    with (
        pq.ParquetFile(evidence.table_path(name)) as file,
        open_writer(target / f"{name}.parquet", name) as writer,
    ):
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            columns = [
                _hide(batch.column(one.name), names)
                if one.name in hidden
                else batch.column(one.name)
                for one in schema
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _hide(column: Any, names: Pseudonyms) -> Any:
    encoded = column.dictionary_encode()
    words = [None if text is None else names.hide(text) for text in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string())).cast(
        pa.string()
    )


def record(names: Pseudonyms, originals: dict[str, str]) -> str:
    """What was done, as `redaction.json` of the bundle says it."""
    done = {
        "pseudonyms": dict(sorted(names.counts.items())),
        "untouched": sorted(KEPT_COLUMNS),
        "manifests_before": dict(sorted(originals.items())),
    }
    return json.dumps(done, indent=1, sort_keys=True) + "\n"
