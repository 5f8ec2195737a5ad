"""A private key is its owner's alone: made so, and refused where it is not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from r8.cli import main as cli
from r8.errors import R8Error, UsageError
from r8.seal import keys

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    keys.make_ed25519(path)
    return path


@pytest.mark.parametrize("taken", ["key", "key.pub"])
def test_a_new_key_is_for_its_owner_alone_and_overwrites_nothing(
    tmp_path: Path, taken: str
) -> None:
    (tmp_path / taken).write_text("somebody's")
    with pytest.raises(UsageError, match="there is a key already"):
        keys.make_ed25519(tmp_path / "key")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "somebody's"


def test_a_link_is_not_followed_to_a_new_key(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="there is a key already"):
        keys.make_ed25519(tmp_path / "key")
    assert not (tmp_path / "elsewhere").exists()


def test_a_new_key_has_rights_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.make_ed25519(tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o601])
def test_a_key_that_others_have_rights_to_is_refused(
    key: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    key.chmod(mode)
    words = ["seal", str(key.parent), "--key", str(key), "-o", str(key.parent / "b.tar.gz")]
    with pytest.raises(UsageError, match="rights to the private key"):
        keys.signing_key(key, with_ssh=False)
    assert cli.main(words) == 4
    said = capsys.readouterr().err
    assert "BEGIN" not in said
    key.chmod(0o600)
    assert keys.signing_key(key, with_ssh=False).public["kind"] == keys.ED25519


def test_the_refusal_says_what_to_type(key: Path) -> None:
    key.chmod(0o644)
    with pytest.raises(UsageError) as caught:
        keys.Ed25519Key(key)
    assert caught.value.next_step.startswith(f"chmod 600 {key}")


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_folder_in_which_anybody_may_swap_the_key_is_refused(
    tmp_path: Path, mode: int, *, refused: bool
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    keys.make_ed25519(folder / "key")
    folder.chmod(mode)
    if refused:
        with pytest.raises(UsageError, match="anybody can write to the directory"):
            keys.Ed25519Key(folder / "key")
        with pytest.raises(UsageError, match="anybody can write to the directory"):
            keys.make_ed25519(folder / "other")
        assert not (folder / "other").exists()
    else:
        keys.Ed25519Key(folder / "key")


def test_a_key_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(UsageError, match="the key is no file"):
        keys.Ed25519Key(tmp_path / "key")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here")
def test_an_ssh_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    keys.SshKey(path)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="rights to the private key"):
        keys.SshKey(path)


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"]
)
def test_a_file_that_is_no_key_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(R8Error, match="not an Ed25519 key"):
        keys.public_key(path)
    with pytest.raises(R8Error, match="not an Ed25519 key"):
        keys.Ed25519Key(path)


def test_a_key_made_where_git_looks_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["keygen", str(tmp_path / "apart")]) == 0
    assert "git looks after this folder" not in capsys.readouterr().out
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    (tmp_path / "checkout" / "deep").mkdir()
    assert cli.main(["keygen", str(tmp_path / "checkout" / "deep" / "key")]) == 0
    assert "git looks after this folder: move the private key out of it" in capsys.readouterr().out
