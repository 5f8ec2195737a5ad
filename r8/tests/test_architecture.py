"""Imports go one way: each package may import the packages below it, and nothing closes a circle.

The test reads folders: a package is a folder of `r8/` (one level deeper in `r8/lab/`), a module
beside them is a package of its own.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTRUMENTS = ("load_client", "probes")
MAX_MODULE_LINES = 400
MAX_MODULES = 30

# From the ground up: a package may import what stands before it, and itself.
JUDGE = (
    *("message", "errors", "crash", "units", "roles", "model", "schema", "resources", "text"),
    *("console", "sensitive", "evidence", "claims", "metrics", "forensics", "verdict", "audit"),
    *("report", "seal", "cli"),
)
LAB = (
    *("site", "machine", "instruments", "patching", "rehearsal", "testbed", "transfer"),
    *("campaign", "component", "preflight", "verbs"),
)
# What the lab may read of the judge: how evidence is written, never what is expected of it.
LAB_READS = {
    *("errors", "crash", "units", "roles", "model", "schema", "resources", "text", "console"),
    *("sensitive", "evidence"),
}
# Entry points that join what nothing else may join.
JOINTS = {"scenarios", "__main__", "__init__"}
# What reads a clock, starts a process or opens a connection.
WORLDLY = {"subprocess", "socket", "ssl", "urllib", "http", "ftplib", "time", "datetime", "asyncio"}
# A journal times its own fsyncs; ssh keys sign through ssh-keygen.
WORLDLY_ALLOWED = {"r8.evidence.journal", "r8.seal.keys"}


def modules(folder: str) -> dict[str, Path]:
    """Every module of a top folder by its dotted name, tests left out."""
    paths = (ROOT / folder).rglob("*.py")
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(paths)
        if "tests" not in path.relative_to(ROOT).parts
    }


def imported(source: str, module: str, known: set[str]) -> set[str]:
    """Modules that a module's text imports, relative ones resolved; those of `known` in full."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = module if f"{module}.__init__" in known else module.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            head = ".".join(above) if node.level else ""
            base = ".".join(part for part in (head, node.module or "") if part)
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in known else base for name in names}
    return found


def package_of(module: str) -> str:
    """`evidence` of r8.evidence.journal, `lab.site` of r8.lab.site.plan."""
    parts = module.split(".")[1:]
    if parts[:1] == ["lab"]:
        return ".".join(parts[:2])
    return parts[0] if parts else "__init__"


def may_import(package: str) -> set[str]:
    """The packages that one may import."""
    head, _, room = package.partition(".")
    if head == "lab":
        below = LAB[: LAB.index(room) + 1] if room else ()
        return LAB_READS | {f"lab.{name}" for name in below}
    return set(JUDGE[: JUDGE.index(package) + 1])


def breaches(module: str, source: str, known: set[str]) -> set[str]:
    """What a module of r8 imports and must not."""
    ours = {name for name in imported(source, module, known) if name.split(".")[0] == "r8"}
    package = package_of(module)
    allowed = may_import(package) | {package, "__init__"}
    return {name for name in ours if package_of(name) not in allowed} | {
        name for name in imported(source, module, known) if name.split(".")[0] in INSTRUMENTS
    }


KNOWN = {
    name: path.read_text(encoding="utf-8")
    for folder in ("r8", *INSTRUMENTS)
    for name, path in modules(folder).items()
}
NAMES = set(KNOWN) | {
    f"{name}.__init__"
    for folder in ("r8", *INSTRUMENTS)
    for name, path in modules(folder).items()
    if path.name == "__init__.py"
}


def test_packages_of_r8_import_downwards_only() -> None:
    found = {
        module: sorted(wrong)
        for module, source in KNOWN.items()
        if module.startswith("r8.")
        and package_of(module) not in JOINTS
        and (wrong := breaches(module, source, NAMES))
    }
    assert found == {}


def test_an_import_upwards_is_seen() -> None:
    assert breaches("r8.verdict.judge", "from r8.lab.site import file\n", NAMES) == {
        "r8.lab.site.file"
    }
    assert breaches("r8.lab.site.file", "from r8.claims import reader\n", NAMES) == {
        "r8.claims.reader"
    }
    assert breaches("r8.lab.site.file", "import r8.lab.campaign.phases\n", NAMES) == {
        "r8.lab.campaign.phases"
    }
    assert breaches("r8.metrics.measure", "import probes\n", NAMES) == {"probes"}


@pytest.mark.parametrize(
    "folder",
    ["r8", *INSTRUMENTS],
)
def test_no_circle_ties_modules_together(folder: str) -> None:
    """Also none that only annotations close: whoever reads one of two has to read both."""
    graph = {
        module: {
            name
            for name in imported(source, module, NAMES)
            if name in KNOWN
            and name != module
            and name.startswith(folder)
            # A package's face is imported with any of its modules.
            and not KNOWN_FACES.get(name)
        }
        for module, source in KNOWN.items()
        if module.startswith(folder)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


KNOWN_FACES = {name.removesuffix(".__init__"): True for name in NAMES if name.endswith("__init__")}


def test_a_circle_is_seen() -> None:
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()


def worldly(source: str) -> set[str]:
    """Modules that a module's text imports and that reach beyond files."""
    return {name.partition(".")[0] for name in imported(source, "r8.x", NAMES)} & WORLDLY


def test_the_judge_has_no_network_no_subprocess_and_no_clock() -> None:
    found = {
        module: sorted(wrong)
        for module, source in KNOWN.items()
        if module.startswith("r8.")
        and package_of(module).split(".")[0] not in {"lab", *JOINTS}
        and module not in WORLDLY_ALLOWED
        and (wrong := worldly(source))
    }
    assert found == {}


def test_a_judge_that_asks_the_network_would_be_seen() -> None:
    assert worldly("import urllib.request\nfrom time import time\n") == {"urllib", "time"}


@pytest.mark.parametrize("folder", INSTRUMENTS)
def test_instruments_import_nothing_of_ours(folder: str) -> None:
    others = {"r8", *INSTRUMENTS} - {folder}
    for module, source in KNOWN.items():
        if module.startswith(folder):
            heads = {name.partition(".")[0] for name in imported(source, module, NAMES)}
            assert heads & others == set(), module


def test_no_module_outgrows_its_reader() -> None:
    long = {
        module: lines
        for module, source in KNOWN.items()
        if (lines := len(source.splitlines())) > MAX_MODULE_LINES
    }
    assert long == {}


@pytest.mark.parametrize("top", ["r8", *INSTRUMENTS])
def test_no_folder_outgrows_its_reader_and_no_name_repeats_its_folder(top: str) -> None:
    folders: dict[Path, list[str]] = {}
    for path in (ROOT / top).rglob("*.py"):
        folders.setdefault(path.parent, []).append(path.stem)
    assert {str(at): len(found) for at, found in folders.items() if len(found) > MAX_MODULES} == {}
    repeated = [
        str(at / stem)
        for at, found in folders.items()
        for stem in found
        if stem.removeprefix("test_").startswith(f"{at.name}_")
    ]
    assert repeated == []


def test_the_top_level_is_the_one_in_the_readme() -> None:
    shown = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".") and not path.name.endswith("egg-info")
    }
    assert shown - {"build", "dist", "docs"} == {
        *("r8", "patches", "probes", "load_client", "data", "reports"),
    }
