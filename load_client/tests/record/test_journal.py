from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from load_client.cli import main
from load_client.clock import OffsetSample, clock_map
from load_client.errors import ClientError
from load_client.record.journal import append_bytes, append_rows, create_numbered
from load_client.record.raw_stream import decode_batches, encode_batch

from ..support.streams import CASES
from .test_rows import capture

if TYPE_CHECKING:
    from load_client.record.capture import Capture

CLOCK = clock_map([OffsetSample(mono_ns=1, offset_ns=5, width_ns=1)])


def test_rows_are_appended_as_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    append_rows(path, [{"a": 1}])
    append_rows(path, [{"a": "\u00e9\n"}, {"a": None}])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"a": 1},
        {"a": "\u00e9\n"},
        {"a": None},
    ]


def test_a_row_is_never_glued_to_a_line_that_was_torn_before(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text('{"a": 1}\n{"a": tor')
    append_rows(path, [{"a": 2}])
    assert path.read_text().splitlines() == ['{"a": 1}', '{"a": tor', '{"a":2}']


@pytest.mark.parametrize("append", [append_bytes, lambda path, _: append_rows(path, [{"a": 1}])])
def test_a_full_disk_is_one_clear_error(append: object) -> None:
    assert callable(append)
    with pytest.raises(ClientError, match=r"cannot write: No space left on device .*/dev/full"):
        append(Path("/dev/full"), b"x")


def test_a_directory_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClientError, match="cannot write"):
        create_numbered(tmp_path / "file" / "raw", "a", ".gz")


def test_numbered_files_never_replace_an_old_one(tmp_path: Path) -> None:
    names = [create_numbered(tmp_path / "raw", "a", ".gz").name for _ in range(3)]
    assert names == ["a-0.gz", "a-1.gz", "a-2.gz"]


def test_raw_streams_come_back_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "raw.gz"
    captures = [capture([case.raw], case.endpoint, case.ended) for case in CASES]
    append_bytes(path, encode_batch(captures[:3], CLOCK))
    append_bytes(path, encode_batch(captures[3:], CLOCK))
    found = list(decode_batches(path))
    assert [clock for clock, _ in found] == [CLOCK, CLOCK]
    assert [one for _, some in found for one in some] == captures


def _in_version(version: int, one: Capture) -> bytes:
    """The member that the client of that version wrote."""
    member = gzip.decompress(encode_batch([one], CLOCK))
    head, line, _ = member.split(b"\n", 2)
    plain = json.loads(line)
    columns = zip(one.reads.user_ns, one.reads.kernel_wall_ns, one.reads.data, strict=True)
    plain["reads"] = [[ns, wall_ns, data.decode("latin-1")] for ns, wall_ns, data in columns]
    if version == 1:
        del plain["path"]
    head = json.dumps(json.loads(head) | {"version": version}).encode()
    return gzip.compress(head + b"\n" + json.dumps(plain).encode() + b"\n")


@pytest.mark.parametrize("version", [1, 2])
def test_streams_of_older_versions_and_names_are_read(tmp_path: Path, version: int) -> None:
    path = tmp_path / "client-measure-e0-0.jsonl.gz"
    captures = [capture([case.raw[:9], case.raw[9:]], "chat", "eof") for case in CASES]
    path.write_bytes(b"".join(_in_version(version, one) for one in captures))
    assert [one for _, (one,) in decode_batches(path)] == captures


def test_rows_are_derived_from_a_file_of_the_older_name_too(tmp_path: Path) -> None:
    one = [capture([CASES[0].raw], "completions", "eof")]
    for name in ("new.raw.gz", "old.jsonl.gz"):
        (tmp_path / name).write_bytes(encode_batch(one, CLOCK))
        assert main(["rederive", str(tmp_path / name), "--out", str(tmp_path / name[:3])]) == 0
    new, old = ((tmp_path / name / "requests.jsonl").read_text() for name in ("new", "old"))
    assert new == old != ""


@pytest.mark.parametrize("lost", [1, 9, 40])
def test_a_torn_last_member_costs_only_itself(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "raw.gz"
    one, two = ([capture([case.raw], "chat", "eof")] for case in CASES[:2])
    path.write_bytes(encode_batch(one, CLOCK) + encode_batch(two, CLOCK)[:-lost])
    assert [captures for _, captures in decode_batches(path)] == [one]


def test_a_file_of_another_kind_or_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "raw.gz"
    path.write_bytes(gzip.compress(b'{"format": "load_client.raw", "version": 99}\n'))
    with pytest.raises(ClientError, match=r"not load_client\.raw version 1"):
        list(decode_batches(path))
