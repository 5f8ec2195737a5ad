"""A rule is added in a copy of the judge exactly as CONTRIBUTING says, and is asked of a run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SECTION = re.compile(r"^## Add a rule$(.*?)^## ", re.MULTILINE | re.DOTALL)
# A file named at the begin of a paragraph, and the code block that ends it.
STEP = re.compile(r"^`(r8/\S+)`.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RULES = "r8/forensics/rules.py"
CATALOGUES = "r8/report/catalogues"
REFERENCE = "data/reference/r1-parallel-read"


@pytest.fixture(name="copy", scope="module")
def _copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The judge with the walk-through's files in it."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("tests", "lab", "scenarios", "__pycache__")
    shutil.copytree(ROOT / "r8", root / "r8", ignore=ignored)
    for name in ("queries", "published"):
        shutil.copytree(ROOT / "data" / name, root / "data" / name)
    (root / "data" / "reference").symlink_to(ROOT / "data" / "reference")
    if (root / next(iter(steps()))).exists():
        return root  # whoever walks through it has done so in this checkout: it must work here
    for name, text in steps().items():
        path = root / name
        if name == RULES:
            extend(path, *text.splitlines())
        elif name.startswith(CATALOGUES):
            for language in ("en", "zh"):
                with (root / CATALOGUES / language / path.name).open("a", encoding="utf-8") as ftl:
                    ftl.write(f"\n{text}")
        else:
            path.write_text(text, encoding="utf-8")
    return root


def steps() -> dict[str, str]:
    section = SECTION.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert section is not None
    return dict(STEP.findall(section[1]))


def extend(path: Path, import_line: str, tuple_line: str) -> None:
    text = path.read_text(encoding="utf-8")
    text = text.replace("import (\n", f"import (\n{import_line}\n", 1)
    path.write_text(text.removesuffix(")\n") + f"{tuple_line}\n)\n", encoding="utf-8")


def r8(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "r8", *words]
    return subprocess.run(argv, cwd=copy, capture_output=True, text=True, check=False)


def test_the_walk_through_touches_a_module_the_tuple_and_the_words() -> None:
    assert list(steps()) == [
        "r8/forensics/patience.py",
        RULES,
        f"{CATALOGUES}/en/certificate.ftl",
    ]


def test_the_new_rule_is_asked_of_a_run_and_holds(copy: Path) -> None:
    run = min((ROOT / REFERENCE).glob("*-b0-patched-*"))
    found = json.loads(r8(copy, "certificate", str(run), "--json").stdout)
    (mine,) = [one for one in found if one["rule_id"] == "C99"]
    (check,) = mine["checks"]
    assert (check["answer"], check["op"], check["limit"]) == ("held", "<=", 3600 * 10**9)
    assert 0 < check["measured"] < 60 * 10**9
    assert len(found) > 20


def test_the_new_rule_is_explained_with_its_limit(copy: Path) -> None:
    done = r8(copy, "explain", "C99")
    assert done.returncode == 0, done.stderr
    assert "nobody waited an hour for a first token" in done.stdout
    assert "3600.000 s" in done.stdout
