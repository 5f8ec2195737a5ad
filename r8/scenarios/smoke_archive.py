"""What `nox -s gpu-smoke` packs: vendors' raw pages, redacted, and what the probes made of them.

    smoke.json          what was run, when each page was asked, the cards as they were understood
    pages/NN.out, .err  what each command printed
    gpu.jsonl           the rows of the GPU probe, one a line
    engine.log          the end of vLLM's log, if an engine ran

Names go twice. The probes' own redaction gives serials, UUIDs and this host's names a digest under
this machine's key; then the finder of `r8 verify` looks at what was left, by forms of its own.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes.gpu.ask import ask
from probes.gpu.seen import seen
from probes.gpu.sources import TOOLS
from probes.host.identity import Identities, identities_of
from probes.tool import ToolRun
from r8.errors import UsageError
from r8.seal.archive import GZIP, pack, unpack
from r8.seal.leftovers import left_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FORMAT = 1
INDEX, ROWS, LOG = "smoke.json", "gpu.jsonl", "engine.log"
# Sizes in bytes, ids of products and PCI domains have the forms of names and are nobody's.
_NOBODYS = re.compile(r"\d+|0x[0-9a-fA-F]{1,8}|[0-9a-fA-F]{8}|[a-z]+\d*")
_SECRET_LITERAL_MIN = 4
# nvidia-smi ends with who runs what on the cards.
_PROCESSES = re.compile(
    r"^\|\s*(?:Processes:|NPU\s+Chip\s+\|\s*Process id).*", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """An archive as it is read: its facts, its pages by command, the rows of the GPU probe."""

    facts: dict[str, Any]
    pages: dict[tuple[str, ...], ToolRun]
    rows: list[dict[str, Any]]


@dataclass(slots=True, kw_only=True)
class Hiding:
    """What makes a text of this machine fit to travel."""

    identities: Identities = field(default_factory=identities_of)
    hidden: int = 0

    def __post_init__(self) -> None:
        """Whoever runs this is in paths; short names stand in ordinary words."""
        user = os.environ.get("USER", "")
        if len(user) >= _SECRET_LITERAL_MIN and user != "root":
            self.identities.one(user)

    def text(self, text: str) -> str:
        """The text without its processes, and without names."""
        kept = self.identities.within(_PROCESSES.sub("", text))
        return "".join(self._line(line) for line in kept.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        if "ersion" in line:
            return line  # 24.1.0.1 is no address
        for kind, found in set(left_in(line)):
            if not (kind in {"number", "serial", "machine"} and _NOBODYS.fullmatch(found)):
                self.hidden += 1
                line = line.replace(found, "hidden")
        return line


def write(
    out: Path,
    facts: dict[str, Any],
    runs: Sequence[ToolRun],
    rows: Iterable[dict[str, Any]],
    log: str,
) -> Smoke:
    """Pack everything into one new file; returns it as a stranger will read it."""
    hiding = Hiding()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        (tree / "pages").mkdir()
        pages = [_page(tree, number, run, hiding) for number, run in enumerate(runs)]
        texts = [hiding.text(json.dumps(row, sort_keys=True)) for row in rows]
        (tree / ROWS).write_text("".join(f"{one}\n" for one in texts))
        (tree / LOG).write_text(hiding.text(log))
        told = {"format": FORMAT, **facts, "pages": pages, "hidden": hiding.hidden}
        told["cards"] = [asdict(one) for one in cards_of(_answering(tree, pages))]
        (tree / INDEX).write_text(hiding.text(json.dumps(told, indent=1, sort_keys=True)))
        files = [str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()]
        out.parent.mkdir(parents=True, exist_ok=True)
        pack(tree, files, out, GZIP)
    return read(out)


def _page(tree: Path, number: int, run: ToolRun, hiding: Hiding) -> dict[str, Any]:
    names = {kind: f"pages/{number:02d}.{kind}" for kind in ("out", "err")}
    for kind, text in (("out", run.stdout), ("err", run.stderr)):
        (tree / names[kind]).write_text(hiding.text(text), encoding="utf-8")
    reason = hiding.text(run.reason) if run.reason else None
    return {"argv": list(run.argv), "returncode": run.returncode, "reason": reason, **names}


def read(path: Path) -> Smoke:
    """Unpack without trusting it. Raises BundleError, or UsageError for another kind of archive."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        unpack(path, tree)
        try:
            facts = json.loads((tree / INDEX).read_text())
            pages = _answering(tree, facts["pages"])
            rows = [json.loads(line) for line in (tree / ROWS).read_text().splitlines()]
            known = facts["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _other(path, f"{type(error).__name__}: {error}") from error
    if not known:
        raise _other(path, f"format {facts['format']}, this R8 reads {FORMAT}")
    return Smoke(facts=facts, pages=pages, rows=rows)


def _other(path: Path, why: str) -> UsageError:
    return UsageError(
        f"not an archive of gpu-smoke ({why})", where=path.name, next_step="make it again"
    )


def _answering(tree: Path, pages: Iterable[dict[str, Any]]) -> dict[tuple[str, ...], ToolRun]:
    found = {}
    for page in pages:
        argv = tuple(str(word) for word in page["argv"])
        out, err = ((tree / Path(page[kind]).name) for kind in ("out", "err"))
        found[argv] = ToolRun(
            argv=argv,
            returncode=page["returncode"],
            reason=page["reason"],
            stdout=(tree / "pages" / out.name).read_text(encoding="utf-8"),
            stderr=(tree / "pages" / err.name).read_text(encoding="utf-8"),
        )
    return found


def replaying(pages: dict[tuple[str, ...], ToolRun]) -> Callable[[tuple[str, ...]], ToolRun]:
    """Runs the commands of an archive: each answers as it did on its machine."""
    absent = "absent: not in this archive"
    return lambda argv: pages.get(argv) or ToolRun(argv=argv, reason=absent)


def cards_of(pages: dict[tuple[str, ...], ToolRun]) -> list[Any]:
    """The cards that today's parsers see in these pages."""
    run = replaying(pages)
    return seen([(tool, ask(tool, run).page) for tool in TOOLS])


def changed(smoke: Smoke) -> list[str]:
    """Numbers of the machine that made the archive which today's parsers do not give.

    A parser may learn: what was a reason then may be a number now.
    """
    now = {one.card.device: one.card.values for one in cards_of(smoke.pages)}
    return [
        f"{one['card']['device']} {quantity}: {value:.15g} then, {found} now"
        for one in smoke.facts["cards"]
        for quantity, value in one["card"]["values"].items()
        if (found := now.get(one["card"]["device"], {}).get(quantity)) != value
    ]
