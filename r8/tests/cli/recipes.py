"""Hostile runs and bundles in the words of a list, each made small, for the real command to read.

Each is made from an honest run or bundle whose manifests, and seal where there is one, are made
right again: a stranger can do all of that with a key of his own.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import R8Error
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file
from r8.seal.archive import GZIP
from r8.seal.statement import ENVELOPE, canonical, envelope, key_id, open_envelope, pae
from r8.tests.evidence.test_table_check import many_rows, repeated, resealed
from r8.tests.seal import hostile_archives
from r8.tests.support import bundle_tools as tools
from r8.tests.support.judged_run import set_detail

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.seal.keys import Ed25519Key
    from r8.tests.support.judged_run import Tables

    Edit = Callable[[Path], object]
    Spoil = Callable[[Tables], None]

ROOT = Path(__file__).resolve().parents[3]
DEPTH = 100_000
NESTED = "[" * DEPTH + "]" * DEPTH
ESC = hostile_archives.SCREEN
MARKUP = '"><style>main{display:none}</style><meta http-equiv=refresh content="0;url=http://a/">'
IMAGE = "![x](http://127.0.0.1:9/x.png)"
# One member of gzip is 64 MiB of zeros in 64 KB; so many of them inflate to 50 GB.
ZEROS, TIMES = 64 << 20, 750
NOTHING_TAKEN = {
    "pseudonyms": {},
    "withheld_files": {},
    "withheld_plan_digests": 0,
    "manifests_before": {},
}
# Another process measures, since a child's peak begins with that of the process it was forked from.
_LAUNCH = """
import json, os, sys, time
begun = time.monotonic()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
took = time.monotonic() - begun
code = os.waitstatus_to_exitcode(status)
said = [code, took, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]
os.write(3, json.dumps(said).encode())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended; `peak_bytes` is the largest of its processes."""

    code: int
    wall_s: float
    cpu_s: float
    peak_bytes: int
    said: str


def r8(*argv: str) -> Ended:
    """Run the real command and measure it."""
    read, write = os.pipe()
    launch = f"import os\nos.dup2({write}, 3)\n{_LAUNCH}"
    command = [sys.executable, "-I", "-S", "-c", launch, sys.executable, "-m", "r8", *argv]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, pass_fds=[write], timeout=120, check=True
        )
    finally:
        os.close(write)
    with os.fdopen(read) as measured:
        code, wall_s, cpu_s, peak_bytes = json.load(measured)
    said = (done.stdout + done.stderr).decode(errors="surrogateescape")
    return Ended(code=code, wall_s=wall_s, cpu_s=cpu_s, peak_bytes=peak_bytes, said=said)


# ---------------------------------------------------------------- runs


def _set(**facts: Any) -> Edit:
    return lambda run: tools.edit_json(run / "run.json", lambda value: value.update(facts))


def _text(name: str, text: str) -> Edit:
    return lambda run: (run / name).write_text(text)


def _instead(name: str, make: Callable[[Path], object]) -> Edit:
    def change(run: Path) -> None:
        (run / name).unlink()
        make(run / name)

    return change


def _detail(text: str) -> Edit:
    return lambda run: tools.edit_column(run, "events", "detail", lambda _: text)


def _rows(run: Path) -> None:
    many_rows(run / "events.parquet", 5_000_000)


def _long_text(run: Path) -> None:
    repeated(run / "requests.parquet", 20_000, output_text="x" * (64 << 20))


# Under a manifest that is right.
RUNS: dict[str, Edit] = {
    "a block of 10^9": _set(block=10**9),
    "a block beyond 64 bits": _set(block=2**70),
    "a run.json 100,000 deep": _text("run.json", NESTED),
    "a detail 100,000 deep": _detail(NESTED),
    "a detail with a number of 400 digits": _detail('{"a": 1' + "0" * 400 + "}"),
    "5 million rows in a small table": _rows,
    "64 MiB 20,000 times": _long_text,
    "a run id of escapes": _set(run_id=ESC),
    "a run id of markup": _set(run_id=MARKUP),
    "a run id of Markdown": _set(run_id=IMAGE),
    "a run id with a star": _set(run_id="campaign-1-*"),
    "a run id that is a partition": _set(run_id="resident_bytes=1"),
    "an arm of escapes": _set(arm=ESC),
    "an arm of markup": _set(arm=MARKUP),
}
# The manifest lists what it listed; what stands there is something else.
PLACES: dict[str, Edit] = {
    "a pipe": _instead("events.parquet", os.mkfifo),
    "a link to /dev/zero": _instead("events.parquet", lambda path: path.symlink_to("/dev/zero")),
    "a folder that is a partition": lambda run: run.rename(run.with_name("resident_bytes=1")),
}


def _hostile_words(tables: Tables) -> None:
    (run,) = tables["run"]
    run["note"] = f"{ESC}{MARKUP}{IMAGE}"
    for group in ("versions", "comparability", "host"):
        run[group] |= {"kernel": ESC, "vllm": MARKUP, "note": IMAGE}


# Through the finaliser, as an honest lab would record them; read, and answered like an honest run.
READ: dict[str, Spoil] = {
    "words of escapes, markup and Markdown": _hostile_words,
    "a plan of 10^12 blocks": lambda tables: set_detail(tables, "run_begin", blocks=10**12),
}


def spoilt_run(run: Path, name: str) -> Path:
    """The run directory after the recipe; it may have another name then."""
    if name in RUNS:
        RUNS[name](run)
        return resealed(run)
    PLACES[name](run)
    return min(one for one in run.parent.iterdir() if one.is_dir())


# ---------------------------------------------------------------- bundles


def _statement(change: Callable[[Any], object]) -> Edit:
    def edit(tree: Path) -> None:
        payload, signatures = open_envelope((tree / ENVELOPE).read_text(), "test")
        said = json.loads(payload)
        change(said)
        (tree / ENVELOPE).write_text(envelope(canonical(said).encode(), signatures))

    return edit


def _payload(text: str) -> Edit:
    return lambda tree: (tree / ENVELOPE).write_text(envelope(text.encode(), {}))


def _inflates(tree: Path) -> None:
    member = gzip.compress(bytes(ZEROS), mtime=0)
    raw = min(tree.glob("runs/*/*/raw"))
    with (raw / "server-z.log.gz").open("wb") as file:
        for _ in range(TIMES):
            file.write(member)
    # So that the archive is no bomb itself.
    (raw / "client-z.raw.gz").write_bytes(gzip.compress(tools.chance_of(0).randbytes(1 << 20)))
    (raw.parent / MANIFEST).write_text(manifest_text(raw.parent))
    (tree / "redaction.json").write_text(json.dumps(NOTHING_TAKEN))
    tools.mend(tree)


def _endless_plan(tree: Path) -> None:
    def more(detail: str) -> str:
        return detail.replace('"blocks": 2', f'"blocks": {10**12}') if detail else detail

    for run in tree.glob("runs/*/*"):
        tools.edit_column(run, "events", "detail", more)
    tools.mend(tree)


BUNDLES: dict[str, Edit] = {
    "a plan of 10^12 blocks": _endless_plan,
    "a bundle.json that is a list": _text("bundle.json", "[]"),
    "a bundle.json 100,000 deep": _text("bundle.json", NESTED),
    "a stated.json that is a list": _text("stated.json", "[]"),
    "a stated.json whose rows are words": _text(
        "stated.json", '{"metrics": ["a"], "certificate": [], "verdicts": []}'
    ),
    "a signer that is a list": _text("signer.json", "[]"),
    "a signer 100,000 deep": _text("signer.json", NESTED),
    "a signer whose key is a number": _text("signer.json", '{"kind": "ed25519", "public": 1}'),
    "a redaction.json that is a list": _text("redaction.json", "[]"),
    "a redaction.json of other parts": _text("redaction.json", '{"pseudonyms": 1}'),
    "a redacted bundle with a .gz of 50 GB": _inflates,
}
# The statement itself; nothing else could be said about it.
STATEMENTS: dict[str, Edit] = {
    "a statement 100,000 deep": _payload(NESTED),
    "an envelope 100,000 deep": _text(ENVELOPE, NESTED),
    "an envelope that is a list": _text(ENVELOPE, "[]"),
    "a statement that is a list": _payload("[]"),
    "a statement without a subject": _statement(lambda said: said.pop("subject")),
    "a statement of no subject": _statement(lambda said: said.update(subject=[])),
    "a statement whose subject is a word": _statement(lambda said: said.update(subject="x")),
}


def spoilt_bundle(tree: Path, name: str, key: Ed25519Key, out: Path) -> Path:
    """The bundle after the recipe, sealed by `key`; the tree is spent."""
    if name in BUNDLES:
        BUNDLES[name](tree)
        _sealed(tree, key)
    if name in STATEMENTS:
        STATEMENTS[name](tree)
        with contextlib.suppress(R8Error):  # no envelope at all cannot be signed
            payload, _ = open_envelope((tree / ENVELOPE).read_text(), "test")
            _sign(tree, payload, key)
    return tools.packed(tree, out.with_name(out.name + GZIP))


def _sealed(tree: Path, key: Ed25519Key) -> None:
    (tree / MANIFEST).unlink()
    lines = manifest_text(tree).splitlines(keepends=True)
    kept = [line for line in lines if not line.endswith(f"{ENVELOPE}\n")]
    (tree / MANIFEST).write_text("".join(kept))
    payload, _ = open_envelope((tree / ENVELOPE).read_text(), "test")
    said = json.loads(payload)
    said["subject"][0]["digest"]["sha256"] = sha256_file(tree / MANIFEST)
    payload = canonical(said).encode()
    _sign(tree, payload, key)


def _sign(tree: Path, payload: bytes, key: Ed25519Key) -> None:
    signed = {key_id(key.public): key.sign(pae(payload))}
    (tree / ENVELOPE).write_text(envelope(payload, signed))
