"""Honest bytes, spoiled at random, before every reader of what others wrote: it reads or refuses.

Five minutes of CPU a reader, or what R8_FUZZ_S says. Changes are drawn by a loop of our own, seeded
and timed, since hypothesis has no budget of CPU time; they keep most of the form, so that they get
behind it. What falls is written to a file and named.
"""

from __future__ import annotations

import faulthandler
import gzip
import json
import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from load_client.stream.events import read_events
from load_client.stream.http_response import parse_response
from probes.tests.support.mutations import FOREIGN, all_cases, check, spoil
from r8.claims.ledger import load_ledger
from r8.errors import R8Error
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import read_run
from r8.evidence.strict_json import strict_json
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.lab.site.load import load_site
from r8.seal.archive import pack, unpack
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun, build_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.tests.support.judged_run import Tables

    Attempt = Callable[[random.Random], object]

pytestmark = pytest.mark.qualify
ROOT = Path(__file__).resolve().parents[3]
CPU_S = float(os.environ.get("R8_FUZZ_S", "300"))
EDITS_MAX = 4
SPLICE_BYTES = 64
# Of another type, size or sign than what stands there.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    1e308,
    "",
    "x" * 300,
    [],
    {},
    [1],
    {"a": 1},
    "NaN",
    "\u202e",
)
EVENTS = (
    b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"one"},"x":[1,2.5e3]}]}\n\n',
    b'data: {"id":"a","choices":[],"usage":{"completion_tokens":1}}\n\ndata: [DONE]\n\n',
    b"",
)
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
    b"%x\r\n%s\r\n" % (len(one), one) for one in EVENTS
)


class NotUnderstood(Exception):  # noqa: N818 - an answer, not an error
    """What a parser of an instrument says in its result instead of raising it."""


def spoiled(data: bytes, dice: random.Random) -> bytes:
    """One to four changes: a bit, a gap, a foreign word, a piece twice or in another place."""
    found = bytearray(data)
    for _ in range(dice.randint(1, EDITS_MAX)):
        at, end = sorted(dice.randrange(len(found) + 1) for _ in range(2))
        end = min(end, at + SPLICE_BYTES)
        piece = bytes(found[at:end])
        match dice.randrange(5):
            case 0 if at < len(found):
                found[at] ^= 1 << dice.randrange(8)
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = dice.choice(FOREIGN).encode()
            case 3:
                found[at:at] = piece * dice.randint(1, 3)
            case _:
                to = dice.randrange(len(found) + 1)
                found[to:to] = piece
    return bytes(found)


def otherwise(value: Any, dice: random.Random) -> Any:
    """A JSON value of which one part has another type, is gone, or is there under another key."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(sorted(value))
        changed = {**value, key: otherwise(value[key], dice)}
        if dice.random() < 0.1:
            changed[dice.choice(("a", "", key + "x"))] = changed.pop(key)
        elif dice.random() < 0.1:
            del changed[key]
        return changed
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return [*value[:at], otherwise(value[at], dice), *value[at + 1 :]]
    return dice.choice(VALUES)


def hold(name: str, attempt: Attempt, allowed: type[Exception], *, forked: bool = False) -> None:
    """Try until the CPU time is spent; whatever is raised and not allowed is named.

    A `forked` attempt may also be ended by a library's abort, as the command's reading child may.
    """
    ends: Counter[str] = Counter()
    began = sum(os.times()[:4])
    while sum(os.times()[:4]) - began < CPU_S:
        dice = random.Random(ends.total())  # noqa: S311 - to be repeated, not kept secret
        ends[_in_child(attempt, dice, allowed) if forked else _end(attempt, dice, allowed)] += 1
        strange = set(ends) - {"read", "refused", signal.SIGABRT.name}
        assert not strange, f"{name}, seed {ends.total() - 1}: {strange}"
    print(f"{name}: {dict(ends)} in {CPU_S:.0f} s of CPU")
    assert ends["refused"]
    assert ends[signal.SIGABRT.name] < ends["refused"] / 10


def _end(attempt: Attempt, dice: random.Random, allowed: type[Exception]) -> str:
    try:
        attempt(dice)
    except allowed:
        return "refused"
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return f"{type(error).__name__}: {error}"
    return "read"


def _in_child(attempt: Attempt, dice: random.Random, allowed: type[Exception]) -> str:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - what a library says as it ends
            os.dup2(nowhere.fileno(), 2)
        faulthandler.disable()
        os.write(tell, _end(attempt, dice, allowed).encode()[:4096])
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as answer:
        word = answer.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return word if code == 0 else signal.Signals(-code).name


@pytest.fixture(scope="module", name="run_dir")
def _run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("runs"), SyntheticRun())


def test_a_run_directory_is_read_or_refused(run_dir: Path, tmp_path: Path) -> None:
    """Its manifest is right: whoever sends a run can write any bytes under any digest."""
    names = sorted(one.name for one in run_dir.iterdir() if one.is_file() and one.name != MANIFEST)
    copy = tmp_path / run_dir.name

    def attempt(dice: random.Random) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run_dir, copy)
        path = copy / dice.choice(names)
        path.write_bytes(spoiled(path.read_bytes(), dice))
        (copy / MANIFEST).write_text(manifest_text(copy))
        read_run(copy)

    hold("run directory", attempt, R8Error, forked=True)


def test_what_an_event_says_is_understood_or_refused(tmp_path: Path) -> None:
    """JSON inside a column, of any shape: the rules answer, or the run is refused."""

    def attempt(dice: random.Random) -> None:
        root = tmp_path / "made"
        shutil.rmtree(root, ignore_errors=True)

        def change(tables: Tables) -> None:
            row = dice.choice([row for row in tables["events"] if row["detail"]])
            row["detail"] = json.dumps(otherwise(json.loads(row["detail"]), dice))

        evidence = judged_run(root, SyntheticRun(), change)
        with connect_settled([evidence]) as connection:
            if refusals(certify(evidence.run, connection)):
                raise R8Error("a rule objects", where="-", next_step="-")

    hold("events", attempt, R8Error)


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar"])
def test_an_archive_is_unpacked_or_refused(run_dir: Path, tmp_path: Path, suffix: str) -> None:
    """Compressed, where most changes break the sum; and what is inside, packed again."""
    names = sorted(one.name for one in run_dir.iterdir() if one.is_file())
    bundle = tmp_path / "bundle.tar.gz"
    pack(run_dir, names, bundle, ".tar.gz")
    sent = bundle.read_bytes()
    honest = gzip.decompress(sent) if suffix == ".tar" else sent

    def attempt(dice: random.Random) -> None:
        target, spoilt = tmp_path / "out", tmp_path / "spoilt.tar.gz"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        data = spoiled(honest, dice)
        spoilt.write_bytes(data if suffix == ".tar.gz" else gzip.compress(data, 1))
        unpack(spoilt, target)

    hold(f"archive {suffix}", attempt, R8Error)


def test_json_is_read_or_refused(run_dir: Path) -> None:
    honest = (run_dir / "run.json").read_bytes()

    def attempt(dice: random.Random) -> None:
        strict_json(spoiled(honest, dice), what="run.json", where="-")

    hold("JSON", attempt, R8Error)


def test_a_site_file_is_read_or_refused(tmp_path: Path) -> None:
    honest = [path.read_bytes() for path in sorted((ROOT / "data" / "sites").glob("*.toml"))]
    path = tmp_path / "site.toml"

    def attempt(dice: random.Random) -> None:
        path.write_bytes(spoiled(dice.choice(honest), dice))
        load_site(path)

    hold("site file", attempt, R8Error)


def test_a_ledger_is_read_or_refused(tmp_path: Path) -> None:
    source = ROOT / "data" / "published"
    names = ("figures.csv", "figures-added.csv", "relations.toml")

    def attempt(dice: random.Random) -> None:
        for name in names:
            shutil.copy(source / name, tmp_path / name)
        path = tmp_path / dice.choice(names)
        path.write_bytes(spoiled(path.read_bytes(), dice))
        load_ledger(tmp_path)

    hold("ledger", attempt, R8Error)


def test_an_answer_of_a_server_is_understood_or_has_its_reason() -> None:
    def attempt(dice: random.Random) -> None:
        response = parse_response(spoiled(ANSWER, dice))
        body = response.body or b""
        told = [*read_events(body, "chat").deltas, *read_events(body, "completions").deltas]
        if response.error or any(one.error for one in told):
            raise NotUnderstood

    hold("answer", attempt, NotUnderstood)


def test_a_page_of_a_probe_raises_nothing() -> None:
    cases = all_cases()

    def attempt(dice: random.Random) -> None:
        case = dice.choice(cases)
        check(case, spoil(case.text, dice))
        if dice.random() < 0.5:
            raise NotUnderstood  # counted, so that something was

    hold("probes", attempt, NotUnderstood)
