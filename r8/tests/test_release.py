"""Version, changelog and citation say the same, and the citation is a valid CFF file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from r8 import __version__

ROOT = Path(__file__).resolve().parents[2]


def _validate(path: Path) -> subprocess.CompletedProcess[str]:
    code = "from cffconvert.cli.cli import cli; cli()"
    argv = [sys.executable, "-W", "ignore", "-c", code, "--validate", "-i", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_citation_is_valid_cff() -> None:
    done = _validate(ROOT / "CITATION.cff")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_citation_without_authors_is_refused(tmp_path: Path) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    del citation["authors"]
    broken = tmp_path / "CITATION.cff"
    broken.write_text(yaml.safe_dump(citation))
    assert _validate(broken).returncode != 0


def test_citation_changelog_and_package_agree_on_version_and_date() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    top = re.search(r"^## \[([^]]+)\] - (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert top is not None
    assert str(citation["version"]) == __version__ == top.group(1)
    assert str(citation["date-released"]) == top.group(2)


@pytest.mark.parametrize("path", ["LICENSE", "CITATION.cff", "pyproject.toml"])
def test_the_licence_is_named_everywhere(path: str) -> None:
    text = (ROOT / path).read_text()
    assert "Apache" in text


def test_the_wheel_holds_the_judge_alone() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    assert not [name for name in packages if "lab" in name or "scenarios" in name]
    assert not [name for name in packages if "tests" in name]
