"""Keeping finished runs as reference runs: every table as it was sealed, raw texts in one archive.

A reference is what a later session of the same machine is compared with. Only complete runs are
kept, a campaign at a time and never over one that is there; each names its machine in its own
`run.json`.

References travel with the checkout, so what no stated number rests on is packed or left out:
    <run_id>/run.json, *.parquet  byte for byte: every metric, certificate, verdict comes of them
    <campaign_id>.raw.tar.xz      raw/ of all its runs: one archive, as the runs of a campaign say
                                  much the same; the places of the checkout, of Python and of the
                                  home are made words
    raw/client-*.raw.gz           left out: the response streams; `chunks` and `requests` have
                                  them as rows
The archive holds the manifest each run was sealed with (`raw/recorded.sha256`), and a run's
`reference.json` says what became of every file, so whoever has the whole run can show that this
one was made from it.
"""

from __future__ import annotations

import fnmatch
import io
import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from r8.errors import SiteError
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file
from r8.evidence.reader import read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from r8.evidence.reader import Evidence

# References are shipped with the checkout: all of them together must stay small. Six blocks of R1's
# patch, R2 and R3 are 18 MB, R1's other four questions the rest.
SHIPPED_BYTES_MAX = 26_000_000
RAW_SUFFIX = ".raw.tar.xz"
RECORDED_MANIFEST = "raw/recorded.sha256"
RECORD = "reference.json"
_LEFT_OUT = ("raw/client-*.raw.gz", "raw/client-*.jsonl.gz")  # the second: of older clients
_AS_THEY_ARE = ("*.parquet", "run.json")
# 16 MiB of dictionary: the logs of a campaign's runs repeat one another.
_XZ_PRESET: Final = 7
_CHECKOUT = Path(__file__).resolve().parents[3]


def record(paths: Iterable[Path], root: Path) -> list[Path]:
    """Keep runs as `root/<scenario>/<run_id>`; returns where they lie.

    Raises:
        EvidenceError: a run differs from its manifest.
        SiteError: a run that is not complete, or a reference of that name that is there already.

    """
    evidences = [_complete(path) for path in paths]
    campaigns: dict[tuple[str, str], list[Evidence]] = {}
    for one in evidences:
        campaigns.setdefault((one.run.scenario, one.run.campaign_id), []).append(one)
    for (scenario, campaign_id), members in campaigns.items():
        _require_new(root / scenario, campaign_id, members)
    kept = []
    for (scenario, campaign_id), members in campaigns.items():
        kept += _keep(root / scenario, campaign_id, members)
    return kept


def _complete(path: Path) -> Evidence:
    evidence = read_run(path)
    if not evidence.run.complete:
        raise SiteError(
            f"run {evidence.run.run_id} did not end by itself: it is no reference",
            where=str(path),
            next_step="resume the campaign first",
        )
    return evidence


def _require_new(folder: Path, campaign_id: str, members: Sequence[Evidence]) -> None:
    for name in (f"{campaign_id}{RAW_SUFFIX}", *(one.run.run_id for one in members)):
        if (folder / name).exists():
            raise SiteError(
                "a reference run of that name is there already, and is never overwritten",
                where=str(folder / name),
                next_step="remove it by hand if it shall be replaced",
            )


def _keep(folder: Path, campaign_id: str, members: Sequence[Evidence]) -> list[Path]:
    """The archive of a campaign, then its runs: a run that is there has its raw texts beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{campaign_id}{RAW_SUFFIX}"
    half = folder / f".{archive.name}.half"
    with tarfile.open(half, "w:xz", preset=_XZ_PRESET) as tar:
        became = [_pack(one, tar) for one in members]
    half.rename(archive)
    kept = []
    for evidence, files in zip(members, became, strict=True):
        target = folder / evidence.run.run_id
        half = folder / f".{target.name}.half"
        shutil.rmtree(half, ignore_errors=True)
        _fill(evidence, half, files)
        _describe(half, archive, files)
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


def _pack(evidence: Evidence, tar: tarfile.TarFile) -> dict[str, str]:
    """Put a run's raw texts into the archive; what became of each file of its manifest."""
    became: dict[str, str] = {}
    for name in evidence.manifest:
        if any(fnmatch.fnmatch(name, one) for one in _LEFT_OUT):
            became[name] = "left out"
        elif any(fnmatch.fnmatch(name, one) for one in _AS_THEY_ARE):
            became[name] = "as it was"
        else:
            text = (evidence.path / name).read_bytes()
            plain = text if name.endswith(".gz") else _without_places(text)
            _add(tar, f"{evidence.run.run_id}/{name}", plain)
            became[name] = "packed" if plain == text else "packed, places replaced"
    manifest = (evidence.path / MANIFEST).read_bytes()
    _add(tar, f"{evidence.run.run_id}/{RECORDED_MANIFEST}", manifest)
    return became


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    # A header of nothing but name and size: the same texts are always the same archive.
    header = tarfile.TarInfo(name)
    header.size = len(content)
    tar.addfile(header, io.BytesIO(content))


def _fill(evidence: Evidence, target: Path, became: dict[str, str]) -> None:
    """Write what stays as it was into `target`."""
    target.mkdir(parents=True)
    for name in evidence.manifest:
        if became[name] == "as it was":
            shutil.copyfile(evidence.path / name, target / name)


def _describe(target: Path, archive: Path, became: dict[str, str]) -> None:
    """Say what became of every file and where the raw texts are; the manifest comes last."""
    said = {"raw": archive.name, "raw_sha256": sha256_file(archive), "files": became}
    (target / RECORD).write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")
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
