"""Secrets are replaced when a run is recorded, and a run that still holds one is never sealed."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from r8.cli import main as cli
from r8.errors import BundleError
from r8.evidence.finalise import recover
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import read_run
from r8.seal.bundle import seal
from r8.sensitive import MASK
from r8.tests.seal.planted import NEEDLES, PHRASES, SECRET_KINDS, found_in, planted_run
from r8.tests.support import bundle_tools as tools
from r8.tests.support.run_factory import SyntheticRun, build_partial, build_run

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUv12"  # noqa: S105 - made up


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    root = tmp_path_factory.mktemp("planted")
    return planted_run(build_partial(root, SyntheticRun()))


def test_no_secret_reaches_a_run_and_names_do(planted: Evidence) -> None:
    left = found_in(planted.path)
    assert sum(map(len, NEEDLES.values())) == 60
    assert {kind: left.get(kind, []) for kind in SECRET_KINDS} == {"token": [], "secret": []}
    assert left == {kind: NEEDLES[kind] for kind in NEEDLES if kind not in SECRET_KINDS}
    log = (planted.path / "raw" / "server-a.log").read_text()
    assert f"--api-key {MASK}\n" in log
    assert f"proxyuser:{MASK}@proxy" in log


def test_no_secret_reaches_a_bundle(planted: Evidence, tmp_path: Path) -> None:
    out = seal([planted], tools.CLAIMS, tmp_path / "b.tar.gz", None)
    left = found_in(tools.opened(out, tmp_path / "tree"))
    assert [kind for kind in SECRET_KINDS if kind in left] == []


def test_a_recovered_run_keeps_no_secret_either(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun())
    log = partial / "raw" / "server-a.log"
    log.write_text(log.read_text() + "".join(f"{one}\n" for one in PHRASES["secret"]))
    (partial / "beside.txt").write_text(TOKEN)
    assert found_in(recover(partial)) == {}


def test_what_holds_no_secret_is_copied_byte_for_byte(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun())
    odd = bytes(range(256)) + b"\r\n\r\x85\x0c" + "é\u2028".encode() + b"tokens: 5"
    (partial / "raw" / "odd.bin").write_bytes(odd)
    (partial / "raw" / "client-x.raw.gz").write_bytes(gzip.compress(TOKEN.encode()))
    final = recover(partial)
    assert (final / "raw" / "odd.bin").read_bytes() == odd
    assert gzip.decompress((final / "raw" / "client-x.raw.gz").read_bytes()) == TOKEN.encode()


def test_a_private_key_across_two_blocks_is_replaced(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun())
    body = "".join(f"{'MIIB' * 16}\n" for _ in range(30))
    filler = "x" * 99 + "\n"
    for shift in (0, 10, 20):  # so that one of the borders falls inside the key
        text = filler * (((4 << 20) // 100) - shift)
        text += f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"
        (partial / "raw" / f"long-{shift}.log").write_text(text)
    final = recover(partial)
    for path in final.glob("raw/long-*.log"):
        assert "MIIB" not in path.read_text()


def _with_secret(run: Path, name: str, data: bytes) -> Evidence:
    """What a run recorded by an older R8 looks like."""
    (run / name).write_bytes((run / name).read_bytes() + data if (run / name).exists() else data)
    (run / MANIFEST).write_text(manifest_text(run))
    return read_run(run)


@pytest.mark.parametrize("redacted", [False, True])
@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("raw/site.toml", f"env = {{ HF_TOKEN = '{TOKEN}' }}\n".encode(), 2),
        ("raw/notes.txt", b"a\nb\nAuthorization: Bearer tok.Zm9vYmFyMTIz\n", 3),
        ("raw/client-a.raw.gz", gzip.compress(f"x\n{TOKEN}\n".encode()), 2),
    ],
)
def test_a_run_with_a_secret_is_not_sealed_and_the_secret_not_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    data: bytes,
    line: int,
    *,
    redacted: bool,
) -> None:
    run = _with_secret(build_run(tmp_path, SyntheticRun()), name, data)
    out = tmp_path / "b.tar.gz"
    words = ["seal", str(run.path), "--unsigned", "-o", str(out), *["--redact"] * redacted]
    assert cli.main(words) == 3
    said = capsys.readouterr().err
    assert f"stands in {name}, line {line}; lines with secrets in all: 1" in said
    assert "record the run again" in said
    assert TOKEN not in said
    assert "Zm9v" not in said
    assert not out.exists()


def test_a_secret_in_a_table_is_found_as_well(tmp_path: Path) -> None:
    path = build_run(tmp_path, SyntheticRun())
    tools.edit_column(path, "events", "detail", lambda _: json.dumps({"token": TOKEN}))
    run = read_run(path)
    with pytest.raises(BundleError, match="seal-secret-found"):
        seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", None)
