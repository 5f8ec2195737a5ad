"""Keeping finished runs as reference runs: every table as it was sealed, raw texts made small.

A reference is what a later session of the same machine is compared with. Only complete runs are
kept, never over one that is there, and each names its machine in its own `run.json`.

References travel with the checkout, so what no stated number rests on is packed or left out:
    run.json, *.parquet   byte for byte: every metric, certificate and verdict is computed from them
    raw/site.toml, plans  byte for byte
    raw/ other texts      gzip; the places of the checkout, of Python and of the home are made words
    raw/client-*.raw.gz   left out: the response streams, which `chunks` and `requests` hold as rows
`raw/recorded.sha256` is the manifest the run was sealed with, and `raw/reference.json` says what
became of every file, so whoever has the whole run can show that this one was made from it.
"""

from __future__ import annotations

import fnmatch
import gzip
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.evidence import read_run
from r8.evidence_manifest import MANIFEST, manifest_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.evidence import Evidence

# References are shipped with the checkout: all of them together must stay small.
SHIPPED_BYTES_MAX = 20_000_000
RECORDED_MANIFEST = "raw/recorded.sha256"
RECORD = "raw/reference.json"
_LEFT_OUT = ("raw/client-*.raw.gz", "raw/client-*.jsonl.gz")  # the second: of older clients
_AS_THEY_ARE = ("*.parquet", "run.json", "raw/site.toml", "raw/plan-*.json", "raw/journals.sha256")
_CHECKOUT = Path(__file__).resolve().parents[2]


def record(paths: Iterable[Path], root: Path) -> list[Path]:
    """Keep runs as `root/<scenario>/<run_id>`; returns where they lie.

    Raises:
        EvidenceError: a run differs from its manifest.
        SiteError: a run that is not complete, or a reference of that name that is there already.

    """
    kept = []
    for path in paths:
        evidence = read_run(path)
        run = evidence.run
        if not run.complete:
            raise SiteError(
                f"run {run.run_id} did not end by itself: it is no reference",
                where=str(path),
                next_step="resume the campaign first",
            )
        target = root / run.scenario / run.run_id
        if target.exists():
            raise SiteError(
                "a reference run of that name is there already, and is never overwritten",
                where=str(target),
                next_step="remove it by hand if it shall be replaced",
            )
        half = target.with_name(f".{target.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        _fill(evidence, half)
        half.rename(target)
        read_run(target)
        kept.append(target)
    return kept


def size_bytes(root: Path) -> int:
    """What all reference runs together take."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def weight(root: Path) -> str:
    """The size of all references in words, with what the checkout allows."""
    allowed = f"{SHIPPED_BYTES_MAX / 1e6:.0f} MB travel with the checkout"
    over = "" if size_bytes(root) <= SHIPPED_BYTES_MAX else ", TOO MUCH"
    return f"{size_bytes(root) / 1e6:.1f} MB of reference runs below {root}{over}; {allowed}"


def _fill(evidence: Evidence, target: Path) -> None:
    """Write the files of a reference into `target`, its manifest last."""
    became: dict[str, str] = {}
    for name in evidence.manifest:
        source = evidence.path / name
        if any(fnmatch.fnmatch(name, one) for one in _LEFT_OUT):
            became[name] = "left out"
            continue
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz") or any(fnmatch.fnmatch(name, one) for one in _AS_THEY_ARE):
            shutil.copyfile(source, copy)
            became[name] = "as it was"
            continue
        text = source.read_bytes()
        plain = _without_places(text)
        # Without a time in its header the same text is always the same file.
        copy.with_name(copy.name + ".gz").write_bytes(gzip.compress(plain, 9, mtime=0))
        became[name] = "packed" if plain == text else "packed, places replaced"
    (target / "raw").mkdir(exist_ok=True)
    shutil.copyfile(evidence.path / MANIFEST, target / RECORDED_MANIFEST)
    (target / RECORD).write_text(json.dumps(became, indent=1, sort_keys=True) + "\n")
    (target / MANIFEST).write_text(manifest_text(target))


def _without_places(text: bytes) -> bytes:
    """The text with this machine's own places as words: they say nothing about the run."""
    for place, word in _places():
        text = text.replace(place.encode(), word)
    return text


def _places() -> Iterator[tuple[str, bytes]]:
    yield str(_CHECKOUT), b"CHECKOUT"
    yield sys.base_prefix, b"PYTHON"
    yield str(Path.home()), b"HOME"
