"""Sealing: the same bytes each time, never over another file, without names if asked."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from r8.cli import main as cli
from r8.errors import UsageError
from r8.evidence.reader import read_run
from r8.forensics.certificate import certify, connect_settled
from r8.metrics.measure import measure
from r8.seal import keys
from r8.seal.bundle import run_paths, seal
from r8.seal.redact import find_names
from r8.seal.statement import ENVELOPE, key_id
from r8.tests.support import bundle_tools as tools
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence

NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return tools.sealed_campaign(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def key(tmp_path: Path) -> keys.Ed25519Key:
    keys.make_ed25519(tmp_path / "key")
    return keys.Ed25519Key(tmp_path / "key")


@pytest.mark.parametrize("suffix", [".tar.zst", ".tar.gz"])
def test_sealing_twice_gives_the_same_bytes(
    runs: list[Evidence], key: keys.Ed25519Key, tmp_path: Path, suffix: str
) -> None:
    one = seal(runs, tools.CLAIMS, tmp_path / f"one{suffix}", key)
    other = seal(list(reversed(runs)), tools.CLAIMS, tmp_path / f"other{suffix}", key)
    assert one.read_bytes() == other.read_bytes()


def test_a_bundle_is_never_overwritten(runs: list[Evidence], tmp_path: Path) -> None:
    out = tmp_path / "b.tar.gz"
    out.write_text("somebody's")
    with pytest.raises(UsageError, match="never overwritten"):
        seal(runs, tools.CLAIMS, out, None)
    assert out.read_text() == "somebody's"


@pytest.mark.parametrize("name", ["b.zip", "b.tar", "b"])
def test_a_name_that_says_no_format_is_refused(
    runs: list[Evidence], tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match=r"named \*.tar.zst or \*.tar.gz"):
        seal(runs, tools.CLAIMS, tmp_path / name, None)


def test_another_implementation_of_dsse_accepts_the_envelope(
    runs: list[Evidence], key: keys.Ed25519Key, tmp_path: Path
) -> None:
    tree = tools.opened(seal(runs, tools.CLAIMS, tmp_path / "b.tar.zst", key), tmp_path / "tree")
    envelope = Envelope.from_dict(json.loads((tree / ENVELOPE).read_text()))
    public = SSlibKey(key_id(key.public), "ed25519", "ed25519", {"public": key.public["public"]})
    assert set(envelope.verify([public], 1)) == {key_id(key.public)}
    said = json.loads(envelope.payload)
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert said["predicate"]["result"] == "FAILED"  # one run of the campaign is invalid


def test_an_unsigned_bundle_is_refused_unless_that_is_said(
    runs: list[Evidence], tmp_path: Path
) -> None:
    bundle = seal(runs, tools.CLAIMS, tmp_path / "b.tar.gz", None)
    assert tools.failed(tools.checks(bundle, tmp_path / "w")) == {
        "signature": "nobody signed this bundle"
    }
    found = tools.checks(bundle, tmp_path / "w", unsigned=True)
    assert tools.failed(found) == {}
    assert tools.said(found["signature"]).startswith("UNSIGNED")


@NEEDS_SSH
def test_an_ssh_key_signs_and_another_ssh_key_does_not_verify(
    runs: list[Evidence], tmp_path: Path
) -> None:
    for name in ("ours", "theirs"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True)
    bundle = seal(runs, tools.CLAIMS, tmp_path / "b.tar.gz", keys.SshKey(tmp_path / "ours"))
    ours, theirs = (keys.public_key(tmp_path / f"{name}.pub") for name in ("ours", "theirs"))
    assert tools.failed(tools.checks(bundle, tmp_path / "w", ours)) == {}
    assert set(tools.failed(tools.checks(bundle, tmp_path / "w", theirs))) == {"signature"}
    assert not keys.verifies(ours, b"no signature", b"payload")


SECRETS = (
    "gpu07",
    "login3",
    "192.0.2.17",
    "2001:db8::7",
    "02:42:ac:11:00:02",
    "S5XNNE0R",
    "alice",
    "hush",
)


def _with_names(tables: Tables) -> None:
    run = tables["run"][0]
    for row in (*tables["probes"], *tables["residency"], *run["other_kv_devices"]):
        row["host"] = "gpu07"
    for row in tables["calibration"]:
        row["host"] = "login3"
    first = {**tables["probes"][0], "value": None, "text": "S5XNNE0R"}
    tables["probes"].append({**first, "probe": "topology", "counter": "serial"})
    run |= {"host": {"name": "gpu07", "kernel": "6.1"}, "kv_host": "gpu07"}
    run["note"] = "hush, run by alice"


def _log_with_names(log: str) -> str:
    return (
        log + "connected to 192.0.2.17 and 2001:db8::7 over 02:42:ac:11:00:02 as gpu07\n"
        "model /home/alice/model, serial: S5XNNE0R, listening on 127.0.0.1\n"
    )


def test_redaction_leaves_no_name_and_changes_no_number(
    key: keys.Ed25519Key, tmp_path: Path
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names, _log_with_names)
    out = tmp_path / "b.tar.gz"
    seal([run], tools.CLAIMS, out, key, redacted=True, also=["hush"])
    tree = tools.opened(out, tmp_path / "tree")
    (copy,) = [read_run(path) for path in run_paths(tree, "runs")]
    for path in tree.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [one for one in SECRETS if one.encode() in data], path
    assert b"127.0.0.1" in (copy.path / "raw" / "server-a.log").read_bytes()
    assert set(copy.table("probes").column("host").to_pylist()) == {"host-1"}
    assert measure([copy]) == measure([run])
    answers = []
    for one in (run, copy):
        with connect_settled([one]) as connection:
            answers.append([found.answer for found in certify(one.run, connection)])
    assert answers[0] == answers[1]


def test_redaction_is_recorded_and_an_address_left_in_is_found(
    key: keys.Ed25519Key, tmp_path: Path
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names, _log_with_names)
    out = seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", key, redacted=True)
    found = tools.checks(out, tmp_path / "w", key.public)
    assert "2 address" in tools.said(found["redaction"])
    tree = tools.opened(out, tmp_path / "tree")
    log = next(tree.glob("runs/*/*/raw/server-a.log"))
    log.write_text(log.read_text() + "peer 198.51.100.9\n")
    tools.mend(tree)
    tools.reseal(tree, key)
    failed = tools.failed(tools.checks(tools.packed(tree, tmp_path / "c.tar.gz"), tmp_path / "w"))
    assert "address 198.51.100.9 was left in raw/server-a.log" in failed["redaction"]


def test_a_version_number_is_no_address(tmp_path: Path) -> None:
    run = judged_run(
        tmp_path, SyntheticRun(), edit_log=lambda log: log + "nvidia-cublas==12.4.5.8 at 10:20:30\n"
    )
    assert [one for one in find_names([run], []).words if "12.4" in one or "10:20" in one] == []


def test_the_command_seals_and_verifies(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, bundle, key = str(runs[0].path.parent), str(tmp_path / "b.tar.zst"), tmp_path / "k"
    assert cli.main(["keygen", str(key)]) == 0
    assert cli.main(["seal", folder, "--key", str(key), "-o", bundle]) == 0
    capsys.readouterr()
    assert cli.main(["verify", bundle, "--key", f"{key}.pub"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["PASS"] * 12
    assert cli.main(["verify", bundle, "--json"]) == 0
    printed: Any = json.loads(capsys.readouterr().out)
    assert printed["exit_code"] == 0


def test_sealing_without_a_key_says_how_to_make_one(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["seal", str(runs[0].path), "-o", str(tmp_path / "b.tar.gz")]) == 4
    assert "r8 keygen FILE" in capsys.readouterr().err
