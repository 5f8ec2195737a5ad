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
from r8.seal import keys
from r8.seal.bundle import seal
from r8.seal.statement import ENVELOPE, key_id
from r8.tests.support import bundle_tools as tools

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


def test_the_command_seals_and_verifies(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, bundle, key = str(runs[0].path.parent), str(tmp_path / "b.tar.zst"), tmp_path / "k"
    assert cli.main(["keygen", str(key)]) == 0
    assert cli.main(["seal", folder, "--key", str(key), "-o", bundle]) == 0
    capsys.readouterr()
    assert cli.main(["verify", bundle, "--key", f"{key}.pub"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["PASS"] * 13
    assert cli.main(["verify", bundle, "--json"]) == 0
    printed: Any = json.loads(capsys.readouterr().out)
    assert printed["exit_code"] == 0


def test_sealing_without_a_key_says_how_to_make_one(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["seal", str(runs[0].path), "-o", str(tmp_path / "b.tar.gz")]) == 4
    assert "r8 keygen FILE" in capsys.readouterr().err
