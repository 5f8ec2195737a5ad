"""A bundle is accepted untouched, and every change to it is refused by the check that saw it."""

from __future__ import annotations

import gzip
import shutil
import tarfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from r8.evidence.manifest import MANIFEST
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.seal import keys
from r8.seal.archive import TOP
from r8.seal.bundle import seal
from r8.seal.verify import exit_code
from r8.tests.support import bundle_tools as tools

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

FEW_CHANGES = 12
SEED = 20261130
# A member that packs a thousand to one.
BOMB_BYTES = 64 << 20


class Sealed:
    """One bundle, the key that sealed it, and a key of somebody else."""

    def __init__(self, root: Path) -> None:
        for name in ("ours", "theirs"):
            keys.make_ed25519(root / name)
        self.ours = keys.Ed25519Key(root / "ours")
        self.theirs = keys.Ed25519Key(root / "theirs")
        runs = tools.sealed_campaign(root / "runs")
        self.bundle = seal(runs, tools.CLAIMS, root / "bundle.tar.zst", self.ours)
        self.tree = tools.opened(self.bundle, root / "tree")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    return Sealed(tmp_path_factory.mktemp("sealed"))


@pytest.fixture
def tree(sealed: Sealed, tmp_path: Path) -> Iterator[Path]:
    copy = tmp_path / "tree"
    shutil.copytree(sealed.tree, copy)
    yield copy
    shutil.rmtree(copy)


def test_the_untouched_bundle_passes_every_check(sealed: Sealed, tmp_path: Path) -> None:
    found = tools.checks(sealed.bundle, tmp_path / "w", sealed.ours.public)
    assert tools.failed(found) == {}
    assert exit_code(list(found.values())) == 0
    assert "the key you gave" in tools.said(found["signature"])
    assert tools.said(found["completeness"]).startswith(
        "c: all 4 planned cells; plan: the event run_begin"
    )


def test_without_a_key_the_signature_says_that_it_does_not_say_who(
    sealed: Sealed, tmp_path: Path
) -> None:
    found = tools.checks(sealed.bundle, tmp_path / "w")
    assert tools.failed(found) == {}
    assert "give --key to know whose" in tools.said(found["signature"])


def test_an_unpacked_bundle_verifies_as_well(sealed: Sealed, tmp_path: Path) -> None:
    assert tools.failed(tools.checks(sealed.tree, tmp_path / "w", sealed.ours.public)) == {}


def _swap(tree: Path, chance: random.Random) -> None:
    one, other = sorted(tree.glob("runs/*/*/requests.parquet"))[:2]
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _flip_byte(tree: Path, chance: random.Random) -> None:
    path = chance.choice(sorted(tools.a_run(tree, chance).glob("*.parquet")))
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _edit_run(tree: Path, chance: random.Random) -> None:
    key, value = chance.choice(
        [
            ("basis", "measured"),
            ("fallback_level", "cluster"),
            ("block", 9),
            ("complete", True),
            ("note", "x"),
        ]
    )
    run = tools.a_run(tree, chance) / "run.json"
    before = run.read_text()
    tools.edit_json(run, lambda run: run.update({key: value}))
    if run.read_text() == before:
        run.write_text(before.replace("\n", "", 1))


def _rename_cell(tree: Path, chance: random.Random) -> None:
    run = tools.a_run(tree, chance)
    run.rename(run.with_name(run.name.replace("-c4", "-c8")))


def _remove_failed(tree: Path, chance: random.Random) -> None:
    shutil.rmtree(next(tree.glob(f"runs/*/{tools.FAILED_RUN}")))


def _restate(tree: Path, chance: random.Random) -> None:
    def better(stated: Any) -> None:
        row = chance.choice([one for one in stated["metrics"] if one["value"] is not None])
        row["value"] = 2 * row["value"] + 1

    tools.edit_json(tree / "stated.json", better)


def _forget_patch(tree: Path, chance: random.Random) -> None:
    tools.edit_json(tree / "bundle.json", lambda value: value.update(patches=[]))


CHANGES: dict[str, Callable[[Path, random.Random], None]] = {
    "a byte in a Parquet file": _flip_byte,
    "a dropped row": tools.drop_row,
    "two swapped files": _swap,
    "a renamed cell": _rename_cell,
    "an edited run.json": _edit_run,
    "a removed failed run": _remove_failed,
    "an edited metric": _restate,
    "a forgotten patch": _forget_patch,
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_alone_is_refused_by_the_manifest(
    sealed: Sealed, tree: Path, tmp_path: Path, change: str
) -> None:
    CHANGES[change](tree, tools.chance_of(1))
    bundle = tools.packed(tree, tmp_path / "b.tar.gz")
    found = tools.checks(bundle, tmp_path / "w", sealed.ours.public)
    assert set(tools.failed(found)) == {"manifest"}
    assert found["metrics"].answer is Answer.UNKNOWN
    assert exit_code(list(found.values())) == 3


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_with_all_manifests_mended_is_refused_by_the_old_statement(
    sealed: Sealed, tree: Path, tmp_path: Path, change: str
) -> None:
    CHANGES[change](tree, tools.chance_of(2))
    tools.mend(tree)
    bundle = tools.packed(tree, tmp_path / "b.tar.gz")
    failed = tools.failed(tools.checks(bundle, tmp_path / "w", sealed.ours.public))
    assert set(failed) == {"statement"}
    assert "an old seal on new content" in failed["statement"]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_under_a_new_statement_is_refused_by_the_old_signature(
    sealed: Sealed, tree: Path, tmp_path: Path, change: str
) -> None:
    CHANGES[change](tree, tools.chance_of(3))
    tools.mend(tree)
    tools.reseal(tree, None)
    bundle = tools.packed(tree, tmp_path / "b.tar.gz")
    failed = tools.failed(tools.checks(bundle, tmp_path / "w", sealed.ours.public))
    assert "does not belong to the statement" in failed["signature"]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_sealed_anew_by_somebody_else_is_refused_by_the_key(
    sealed: Sealed, tree: Path, tmp_path: Path, change: str
) -> None:
    CHANGES[change](tree, tools.chance_of(4))
    tools.mend(tree)
    tools.reseal(tree, sealed.theirs)
    bundle = tools.packed(tree, tmp_path / "b.tar.gz")
    failed = tools.failed(tools.checks(bundle, tmp_path / "w", sealed.ours.public))
    assert failed["signature"].startswith("signed by key ")


# Somebody seals a changed bundle with a key of his own, and nobody asks whose key it is.
@pytest.mark.parametrize(
    ("change", "check", "says"),
    [
        (_remove_failed, "completeness", "1 of 4 planned cells left out: b1-patched-c4"),
        (_restate, "metrics", " differ: c-b"),
        (_forget_patch, "contents", "bundle.json says otherwise about 'patches'"),
        (_rename_cell, "runs", "the directory says"),
        (_swap, "runs", "rows of another run"),
    ],
    ids=["a failed run left out", "metric", "patch", "renamed cell", "swapped tables"],
)
def test_what_a_self_made_seal_hides_is_found_in_the_content(
    sealed: Sealed, tree: Path, tmp_path: Path, change: Any, check: str, says: str
) -> None:
    change(tree, tools.chance_of(5))
    tools.mend(tree)
    tools.reseal(tree, sealed.theirs)
    failed = tools.failed(tools.checks(tools.packed(tree, tmp_path / "b.tar.gz"), tmp_path / "w"))
    assert says in failed[check]
    assert "signature" not in failed


def test_faster_requests_are_found_by_recomputing_their_metrics(
    sealed: Sealed, tree: Path, tmp_path: Path
) -> None:
    def faster(row: dict[str, Any]) -> None:
        row["first_content_ns"] = row["sent_ns"] + 1000

    tools.edit_rows(tree, "requests", faster)
    tools.mend(tree)
    tools.reseal(tree, sealed.theirs)
    failed = tools.failed(tools.checks(tools.packed(tree, tmp_path / "b.tar.gz"), tmp_path / "w"))
    assert " differ: c-b0-patched-c4 " in failed["metrics"]


def test_a_verdict_that_was_made_nicer_is_refused(
    sealed: Sealed, tree: Path, tmp_path: Path
) -> None:
    def nicer(stated: Any) -> None:
        stated["verdicts"][0]["outcome"] = "REPRODUCED"

    tools.edit_json(tree / "stated.json", nicer)
    tools.mend(tree)
    tools.reseal(tree, sealed.theirs)
    failed = tools.failed(tools.checks(tools.packed(tree, tmp_path / "b.tar.gz"), tmp_path / "w"))
    assert failed["verdicts"] == "1 of 10 differ: r1.patch.ttft.gain"


def test_a_finding_that_was_made_nicer_is_refused(
    sealed: Sealed, tree: Path, tmp_path: Path
) -> None:
    def nicer(stated: Any) -> None:
        bad = next(one for one in stated["certificate"] if one["answer"] == "refuted")
        bad["answer"] = "held"

    tools.edit_json(tree / "stated.json", nicer)
    tools.mend(tree)
    tools.reseal(tree, sealed.theirs)
    failed = tools.failed(tools.checks(tools.packed(tree, tmp_path / "b.tar.gz"), tmp_path / "w"))
    assert failed["certificate"].startswith(f"1 of {4 * len(RULES)} differ: {tools.FAILED_RUN} ")


def _member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> Any:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, link
    return member


HOSTILE: dict[str, tuple[Any, bytes, str]] = {
    "climbs out": (_member(f"{TOP}/../../out", 1), b"x", "climbs out of the archive"),
    "absolute": (_member("/etc/r8-out", 1), b"x", "climbs out of the archive"),
    "another folder": (_member("elsewhere/out", 1), b"x", "does not lie in"),
    "a link": (_member(f"{TOP}/zz", 0, tarfile.SYMTYPE, "/etc/passwd"), b"", "not a plain file"),
    "a hard link": (_member(f"{TOP}/zz", 0, tarfile.LNKTYPE, "/etc/passwd"), b"", "not a plain"),
    "a device": (_member(f"{TOP}/zz", 0, tarfile.CHRTYPE), b"", "not a plain file"),
    "a bomb": (_member(f"{TOP}/zz", BOMB_BYTES), bytes(BOMB_BYTES), "more than its archive can"),
    "twice": (_member(f"{TOP}/stated.json", 1), b"x", "twice or out of order"),
}


@pytest.mark.parametrize("kind", HOSTILE, ids=str)
def test_a_hostile_member_is_refused_by_name_and_nothing_is_written_outside(
    sealed: Sealed, tmp_path: Path, kind: str
) -> None:
    member, data, says = HOSTILE[kind]
    bundle = tools.raw_tar(sealed.tree, tmp_path / "b.tar.gz", [(member, data)])
    before = sorted(tmp_path.rglob("*"))
    failed = tools.failed(tools.checks(bundle, tmp_path / "w", sealed.ours.public))
    assert set(failed) == {"archive"}
    assert says in failed["archive"]
    assert sorted(tmp_path.rglob("*")) == before


def test_bytes_behind_the_last_file_are_refused(sealed: Sealed, tmp_path: Path) -> None:
    bundle = tools.packed(sealed.tree, tmp_path / "b.tar.gz")
    with bundle.open("ab") as file:
        file.write(gzip.compress(b"more", mtime=0))
    assert set(tools.failed(tools.checks(bundle, tmp_path / "w"))) == {"archive"}


@pytest.mark.parametrize("name", ["b.tar.zst", "b.tar.gz"])
def test_a_file_that_is_no_archive_is_refused_as_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not a bundle at all" * 100)
    failed = tools.failed(tools.checks(tmp_path / name, tmp_path / "w"))
    assert "torn or not one" in failed["archive"]


def refuse_random_changes(sealed: Sealed, folder: Path, seed: int, count: int) -> Counter[str]:
    """Whatever the attacker mends, and with the right key at hand, no change gets through.

    Returns how many changes each check was the first to refuse.
    """
    chance = tools.chance_of(seed)
    seen: Counter[str] = Counter()
    for number in range(count):
        change = chance.choice([*CHANGES, *HOSTILE])
        tree = folder / f"tree{number}"
        bundle = folder / f"b{number}.tar.gz"
        if change in HOSTILE:
            member, data, _ = HOSTILE[change]
            tools.raw_tar(sealed.tree, bundle, [(member, data)])
        else:
            shutil.copytree(sealed.tree, tree)
            CHANGES[change](tree, chance)
            effort = chance.randrange(4)
            if effort:
                tools.mend(tree)
            if effort > 1:
                tools.reseal(tree, sealed.theirs if effort > 2 else None)
            tools.packed(tree, bundle)
            shutil.rmtree(tree)
        failed = tools.failed(tools.checks(bundle, folder / "w", sealed.ours.public))
        assert failed, (seed, number, change)
        seen.update([next(iter(failed))])
        bundle.unlink()
    assert list(folder.iterdir()) == []
    return seen


def test_random_changes_are_each_refused_by_name(sealed: Sealed, tmp_path: Path) -> None:
    """A few of those that `nox -s qualify` makes."""
    seen = refuse_random_changes(sealed, tmp_path, SEED, FEW_CHANGES)
    assert sum(seen.values()) == FEW_CHANGES


def test_a_byte_of_the_archive_itself_never_changes_what_is_accepted(
    sealed: Sealed, tmp_path: Path
) -> None:
    """A flipped bit is refused, unless it unpacks to the very same bytes."""
    chance = tools.chance_of(SEED)
    whole = sealed.bundle.read_bytes()
    refused = 0
    for number in range(40):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        bundle = tmp_path / "b.tar.zst"
        bundle.write_bytes(data)
        found = tools.checks(bundle, tmp_path / "w", sealed.ours.public)
        refused += bool(tools.failed(found))
        if not tools.failed(found):
            same = tools.opened(bundle, tmp_path / f"same{number}")
            assert (same / MANIFEST).read_bytes() == (sealed.tree / MANIFEST).read_bytes()
    assert refused >= 39
