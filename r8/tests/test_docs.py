"""What the README and CONTRIBUTING tell people to type exists and works."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from r8.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
DECISIONS = ROOT / "docs" / "decisions"
TEXTS = "\n".join(
    path.read_text()
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
)
RUNS = "data/runs/r1-parallel-read"


def _sessions() -> set[str]:
    """Names of the nox sessions, as nox lists them."""
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^[*-] (\S+)", listed.stdout, re.MULTILINE))


def _help(*words: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        cli.main([*words, "--help"])
    assert ended.value.code == 0
    return said.getvalue()


def test_every_nox_session_named_in_a_text_exists() -> None:
    named = set()
    for words in re.findall(r"nox -s ((?:[a-z][a-z0-9-]* ?)+)", TEXTS):
        named |= set(words.split())
    assert "reproduce-r1" in named
    assert named <= _sessions()


@pytest.mark.parametrize(
    "verb", sorted(set(re.findall(r"^    r8 ([a-z]+)|`r8 ([a-z]+)", TEXTS, re.MULTILINE)))
)
def test_every_verb_named_in_a_text_exists(verb: tuple[str, str]) -> None:
    name = verb[0] or verb[1]
    assert "usage: r8 " + name in _help(name)


def test_the_two_commands_of_the_readme_are_the_ones_ci_types() -> None:
    (command,) = re.findall(r"^    (python3 -m venv .*nox -s tests)$", README, re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text()
    assert command.replace("tests", "reproduce-r1") in README


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:r8|data|patches|\.ci)/[\w./-]+)`", TEXTS)))
)
def test_every_path_named_in_a_text_exists(path: str) -> None:
    if path.startswith("data/runs"):
        pytest.skip("made by a run")
    if f"`{path}` declares it" in TEXTS:
        pytest.skip("made by whoever walks through it")
    assert (ROOT / path).exists()


@pytest.mark.parametrize("module", ["load_client", "probes"])
def test_an_instrument_works_alone(module: str, tmp_path: Path) -> None:
    """Copied to an empty place, without site packages: its help must answer."""
    subprocess.run(["cp", "-r", str(ROOT / module), str(tmp_path)], check=True)
    argv = [sys.executable, "-S", "-m", module, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "usage" in done.stdout


def test_the_texts_name_no_path_of_a_developers_machine() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    forbidden = re.compile(rb"/(?:work|root)/(?!\.pyenv)[a-z]|/tmp/lab")
    for name in filter(None, tracked):
        path = ROOT / name.decode()
        if path.suffix in {".py", ".md", ".toml", ".sql", ".txt", ".cff"} and path.is_file():
            found = forbidden.search(path.read_bytes())
            assert found is None or path == Path(__file__), f"{path}: {found}"


def test_the_architecture_names_every_package() -> None:
    packages = {
        path.parent.relative_to(ROOT / "r8").as_posix()
        for path in (ROOT / "r8").rglob("__init__.py")
        if "tests" not in path.parts
    } - {".", "lab"}
    tops = {name for name in packages if "/" not in name}
    assert {name for name in tops if f"`r8/{name}`" not in ARCHITECTURE} == set()
    rooms = {name.removeprefix("lab/") for name in packages - tops if name.startswith("lab/")}
    assert {name for name in rooms if not re.search(rf"\b{name}  ", ARCHITECTURE)} == set()


def test_every_decision_is_in_the_list_of_decisions() -> None:
    listed = re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", (DECISIONS / "README.md").read_text())
    assert listed == sorted(path.name for path in DECISIONS.glob("0*.md"))
    assert len(listed) >= 10
