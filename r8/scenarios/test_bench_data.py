"""A session of 72 hours: what its data weighs, how long questions and the report take.

`nox -s bench -- data`. The session is simulated (`r8.tests.support.simulated_session`); sealing,
views, report and verification are the real ones. Environment variables change its size:
R8_BENCH_DATA_HOURS (72; requests go with it), R8_BENCH_DATA_RUNS (24), R8_BENCH_DATA_DIR (kept when
given). The same
questions are asked of JSON lines and CSV of the first R8_BENCH_DATA_ROW_RUNS runs (2), and of the
Parquet files of these runs.
"""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from r8.console import table
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.tests.support import scale_of_data as scale
from r8.tests.support.simulated_session import Scale, specs, write_run

OPTIONS = ()
HOURS = float(os.environ.get("R8_BENCH_DATA_HOURS", "72"))
ROW_RUNS = int(os.environ.get("R8_BENCH_DATA_ROW_RUNS", "2"))
SIZE = Scale(
    hours=HOURS,
    runs=int(os.environ.get("R8_BENCH_DATA_RUNS", "24")),
    requests=round(200_000 * HOURS / 72),
)
MB = 1e6
_NOT_ASCII = bytes(one | 0x80 for one in range(256))


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("R8_BENCH_DATA_DIR")
    return Path(named) if named else tmp_path_factory.mktemp("session")


@pytest.fixture(name="runs", scope="module")
def _runs(folder: Path) -> list[Path]:
    """The sealed runs of the session; made once, and never twice in a folder that is kept."""
    root = folder / "runs"
    for number, spec in enumerate(specs(SIZE)):
        if (root / spec.scenario / spec.name).is_dir():
            continue
        shutil.rmtree(root / spec.scenario / f"{spec.name}.partial", ignore_errors=True)
        partial = write_run(root, spec)
        journal_bytes = (partial / "probes.jsonl").stat().st_size
        if number < ROW_RUNS:
            _keep_journals(partial, folder / "journals" / spec.name)
        cost = scale.finalised(partial)
        print(f"\n{spec.name}: {journal_bytes / MB:.0f} MB of probe journal; {_said(cost)}", end="")
        assert cost.peak_bytes < scale.PEAK_BYTES_MAX
    return scale.sealed_runs(root)


def _keep_journals(partial: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name in scale.WIDE_TABLES:
        (place / f"{name}.jsonl").unlink(missing_ok=True)
        (place / f"{name}.jsonl").hardlink_to(partial / f"{name}.jsonl")


def _said(cost: scale.Cost) -> str:
    return f"{cost.wall_s:.2f} s wall, {cost.cpu_s:.2f} s CPU, {cost.peak_bytes / MB:.0f} MB peak"


def _rows(runs: list[Path], name: str) -> int:
    return sum(pq.read_metadata(one / f"{name}.parquet").num_rows for one in runs)


def _load() -> str:
    return f"load average over a minute: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores"


def test_the_session_fits_its_bytes(runs: list[Path]) -> None:
    """All tables of all runs, as they lie on the disk."""
    size = scale.parquet_bytes(runs)
    counts = {name: _rows(runs, name) for name in scale.WIDE_TABLES}
    print(f"\n{SIZE.hours:.0f} h in {len(runs)} runs: {counts}")
    print(f"{size / MB:.1f} MB of Parquet; {_load()}")
    assert size < scale.PARQUET_BYTES_MAX


def test_every_question_is_answered_in_time(runs: list[Path]) -> None:
    """Each in a process of its own, over all runs."""
    costs = {name: scale.asked(text, runs) for name, text in scale.QUESTIONS.items()}
    rows = [
        [name, f"{c.wall_s:.2f}", f"{c.cpu_s:.2f}", f"{c.peak_bytes / MB:.0f}"]
        for name, c in costs.items()
    ]
    print("\n" + table(rows, ["question", "wall s", "CPU s", "peak MB"]) + "\n" + _load())
    assert max(one.judged_s for one in costs.values()) < scale.VIEWS_S_MAX
    assert max(one.peak_bytes for one in costs.values()) < scale.PEAK_BYTES_MAX


def test_the_same_questions_over_json_lines_and_csv(runs: list[Path], folder: Path) -> None:
    """The answers must be the same; what differs is the price."""
    few = [one for one in runs if (folder / "journals" / one.name).is_dir()]
    csv = folder / "csv"
    csv.mkdir(exist_ok=True)
    scale.write_csv(csv, few)
    over_json = scale.views_over_json({one.name: folder / "journals" / one.name for one in few})
    over_csv = scale.views_over_csv(csv)
    rows = []
    for name, text in scale.QUESTIONS.items():
        parquet = scale.asked(text, few)
        others = [scale.asked(text, few, views) for views in (over_json, over_csv)]
        assert [one.output for one in others] == [parquet.output] * 2, name
        rows.append([name, f"{parquet.wall_s:.2f}", f"{parquet.cpu_s:.2f}"])
        rows[-1] += [f"{one.cpu_s / parquet.cpu_s:.1f}x" for one in others]
    headers = ["question", "Parquet wall s", "Parquet CPU s", "JSON lines, CPU", "CSV, CPU"]
    bytes_of = {
        "JSON lines": sum(path.stat().st_size for path in (folder / "journals").rglob("*.jsonl")),
        "CSV": sum(path.stat().st_size for path in csv.iterdir()),
    }
    print(f"\n{len(few)} runs, {_rows(few, 'probes')} probe rows\n" + table(rows, headers))
    sizes = [f"{name} {size / scale.parquet_bytes(few):.0f}x" for name, size in bytes_of.items()]
    print(f"bytes against Parquet: {', '.join(sizes)}; {_load()}")


def test_the_report_is_made_in_time_and_memory(runs: list[Path], folder: Path) -> None:
    """Both languages, every chart and timeline."""
    out = folder / "report.html"
    cost = scale.r8("report", str(runs[0].parent), "-o", str(out))
    print(f"\nreport: {_said(cost)}; {out.stat().st_size / MB:.1f} MB page; {_load()}")
    assert cost.judged_s < scale.REPORT_S_MAX
    assert cost.peak_bytes < scale.PEAK_BYTES_MAX


def test_a_bundle_of_500_mb_is_verified_in_time(runs: list[Path], folder: Path) -> None:
    """The session's runs, and response streams that no codec makes smaller, up to 500 MB."""
    key, bundle = folder / "key", folder / "session.tar.zst"
    for old in (key, folder / "key.pub", bundle):
        old.unlink(missing_ok=True)
    filled = _filled(runs, folder / "filled")
    scale.r8("keygen", str(key))
    sealed = scale.r8("seal", str(filled), "-o", str(bundle), "--key", str(key))
    cost = scale.r8("verify", str(bundle), "--key", f"{key}.pub")
    print(f"\nseal: {_said(sealed)}\nverify: {_said(cost)}")
    print(f"{bundle.stat().st_size / MB:.0f} MB bundle; {_load()}\n{cost.output}")
    assert bundle.stat().st_size >= scale.VERIFIED_BYTES
    assert cost.judged_s < scale.VERIFY_S_MAX
    assert cost.peak_bytes < scale.PEAK_BYTES_MAX


def _filled(runs: list[Path], root: Path) -> Path:
    """Copies of the runs with a stream each, so that their bundle has the size to be verified."""
    shutil.rmtree(root, ignore_errors=True)
    missing = scale.VERIFIED_BYTES - scale.parquet_bytes(runs)
    for one in runs:
        copy = root / one.parent.name / one.name
        shutil.copytree(one, copy)
        stream = copy / "raw" / "client-measure-a-0.raw.gz"
        # Seven random bits a byte; none of it reads like a key.
        noise = secrets.token_bytes(max(1, missing * 6 // 5 // len(runs))).translate(_NOT_ASCII)
        stream.write_bytes(gzip.compress(noise, compresslevel=0))
        (copy / MANIFEST).write_text(manifest_text(copy))
    return root
