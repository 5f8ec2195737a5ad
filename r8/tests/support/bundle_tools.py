"""What somebody who tampers with a bundle does: open it, change it, make it look whole again."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import tarfile
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from r8.claims.reader import load_claims
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file, sha256_json
from r8.message import Answer
from r8.report.words import render_reasons
from r8.roles import Role
from r8.seal import keys
from r8.seal.archive import GZIP, TOP, pack, unpack
from r8.seal.statement import ENVELOPE, canonical, envelope, key_id, open_envelope, pae
from r8.seal.verify import Step, verify
from r8.tests.support.judged_run import judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.tests.support.judged_run import Tables

ARMS = ("patched", "unpatched")
BLOCKS = 2
FAILED_RUN = "c-b1-patched-c4"
CLAIMS = load_claims("r1-parallel-read")


def sealed_campaign(root: Path) -> list[Evidence]:
    """Two blocks of two arms; the last patched run has a failed request."""

    def with_plan(tables: Tables) -> None:
        set_detail(tables, "run_begin", arms=list(ARMS), levels=[4], blocks=BLOCKS)

    return [
        judged_run(
            root,
            SyntheticRun(
                campaign_id="c",
                block=block,
                order=order,
                arm=arm,
                failures=int(block == BLOCKS - 1 and arm == "patched"),
            ),
            with_plan,
        )
        for block in range(BLOCKS)
        for order, arm in enumerate(ARMS)
    ]


def declared_run(root: Path, arm: str) -> Evidence:
    """One run that is the whole of its campaign, with the digest of its declared plan."""
    plan = {"arms": [arm], "levels": [4], "blocks": 1}

    def with_plan(tables: Tables) -> None:
        set_detail(tables, "run_begin", **plan)
        first = next(row for row in tables["events"] if row["name"] == "run_begin")
        tables["run"][0]["plan_sha256"] = sha256_json(json.loads(first["detail"]))

    return judged_run(root, SyntheticRun(arm=arm, role=Role.ARRAY), with_plan)


def checks(
    bundle: Path, work: Path, key: Mapping[str, str] | None = None, *, unsigned: bool = False
) -> dict[str, Step]:
    """Every check of a bundle by name; `work` is made and removed again."""
    work.mkdir()
    try:
        found = verify(bundle, work, CLAIMS, keys.verifies, key=key, unsigned_allowed=unsigned)
    finally:
        shutil.rmtree(work)
    return {one.name: one for one in found}


def said(step: Step) -> str:
    """What a step says, as an English reader sees it."""
    return render_reasons(step.reasons)


def failed(found: dict[str, Step]) -> dict[str, str]:
    """Texts of the checks that failed, by name."""
    return {one.name: said(one) for one in found.values() if one.answer is Answer.REFUTED}


def opened(bundle: Path, target: Path) -> Path:
    """The bundle unpacked, to be changed."""
    target.mkdir()
    unpack(bundle, target)
    return target


def packed(tree: Path, out: Path) -> Path:
    """The tree as a bundle again, whatever its manifests say."""
    files = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    pack(tree, files, out, GZIP)
    return out


def mend(tree: Path) -> None:
    """Make every manifest and bundle.json agree with the files again; the seal stays old."""
    for manifest in tree.glob(f"runs/*/*/{MANIFEST}"):
        manifest.write_text(manifest_text(manifest.parent))
    inside = json.loads((tree / "bundle.json").read_text())
    inside["runs"] = [
        {**row, "manifest_sha256": sha256_file(tree / row["path"] / MANIFEST)}
        for row in inside["runs"]
        if (tree / row["path"] / MANIFEST).is_file()
    ]
    (tree / "bundle.json").write_text(canonical(inside))
    (tree / MANIFEST).unlink()
    text = manifest_text(tree)
    lines = [line for line in text.splitlines(keepends=True) if not line.endswith(f"{ENVELOPE}\n")]
    (tree / MANIFEST).write_text("".join(lines))


def reseal(tree: Path, signing: keys.Ed25519Key | None) -> None:
    """A new statement about the mended manifest: signed by that key, or by the old signature."""
    payload, signatures = open_envelope((tree / ENVELOPE).read_text(), "test")
    said = json.loads(payload)
    said["subject"][0]["digest"]["sha256"] = sha256_file(tree / MANIFEST)
    payload = canonical(said).encode()
    if signing is not None:
        (tree / "signer.json").write_text(canonical(signing.public))
        mend(tree)
        said["subject"][0]["digest"]["sha256"] = sha256_file(tree / MANIFEST)
        payload = canonical(said).encode()
        signatures = {key_id(signing.public): signing.sign(pae(payload))}
    (tree / ENVELOPE).write_text(envelope(payload, signatures))


def raw_tar(tree: Path, out: Path, extra: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """A hostile archive: the tree's files as R8 writes them, and members it would never write."""
    files = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    with gzip.open(out, "wb") as file, tarfile.open(mode="w|", fileobj=file) as tar:
        for name in files:
            data = (tree / name).read_bytes()
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member, data in extra:
            tar.addfile(member, io.BytesIO(data))
    return out


def chance_of(seed: int) -> random.Random:
    """Chance that comes out the same each time."""
    return random.Random(seed)  # noqa: S311 - not for secrecy


def a_run(tree: Path, chance: random.Random) -> Path:
    """One of the run directories."""
    return chance.choice(sorted(tree.glob("runs/*/*")))


def drop_row(tree: Path, chance: random.Random) -> None:
    """One row less in one table of one run; nothing else of the file changes."""
    tables = [
        path for path in a_run(tree, chance).glob("*.parquet") if pq.read_table(path).num_rows
    ]
    path = chance.choice(sorted(tables))
    rows = pq.read_table(path)
    gone = chance.randrange(rows.num_rows)
    keep = [number for number in range(rows.num_rows) if number != gone]
    pq.write_table(rows.take(keep), path)


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2))


def edit_column(run: Path, table: str, column: str, change: Callable[[Any], Any]) -> None:
    """Change every value of a column of a run, and its manifest with it."""
    path = run / f"{table}.parquet"
    rows = pq.read_table(path)
    values = [{**row, column: change(row[column])} for row in rows.to_pylist()]
    pq.write_table(type(rows).from_pylist(values, schema=rows.schema), path)
    (run / MANIFEST).write_text(manifest_text(run))


def edit_rows(tree: Path, table: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every measured row of a table of the first run."""
    path = min(tree.glob(f"runs/*/*/{table}.parquet"))
    rows = pq.read_table(path)
    values = rows.to_pylist()
    for row in values:
        if row["phase"] == "measure":
            change(row)
    pq.write_table(type(rows).from_pylist(values, schema=rows.schema), path)
