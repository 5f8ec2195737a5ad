"""What `r8 --help` prints: every verb under the person who types it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.cli.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PEOPLE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("newcomer", "no cluster, no GPU: nox -s reproduce-r1 rehearses everything on a laptop", ()),
    (
        "third party",
        "a cluster and a site file: nox -s reproduce-r1 -- --site my-site.toml",
        ("power", "preflight", "patch", "status", "recover", "clean"),
    ),
    (
        "analyst",
        "the same SQL as data/queries, by hand or from here",
        ("sql", "dictionary", "metrics", "runs"),
    ),
    (
        "auditor",
        "a laptop: which number follows from which, and is this run what it says",
        (
            "audit",
            "checklist",
            "diff",
            "gate",
            "judge",
            "rounds",
            "certificate",
            "explain",
            "report",
            "seal",
            "verify",
            "keygen",
        ),
    ),
)
# They act on machines, for as long as that takes; all others read, within limits.
LAB_VERBS = ("preflight", "status", "clean", "patch")
READING_VERBS = tuple(verb for _, _, verbs in PEOPLE for verb in verbs if verb not in LAB_VERBS)
CODES = """\
exit codes of `r8 judge`: 0 reproduced, 1 deviates, 2 inconclusive, 3 invalid, 4 usage or site
error, 5 nothing comparable was judged, 70 an error of R8 itself; `r8 VERB --help` has each verb's
own options
"""


def verb_of(words: Sequence[str]) -> str | None:
    """The verb of a command line; None where only options were typed."""
    return next((word for word in words if not word.startswith("-")), None)


def help_map(helps: Mapping[str, str]) -> str:
    """The map, from every verb's one-line help; a verb of nobody is shown last."""
    lines = []
    for person, words, verbs in PEOPLE:
        lines.append(f"{person}: {words}")
        lines += [f"  {verb:<12} {helps[verb]}" for verb in verbs if verb in helps]
        lines.append("")
    behind = {verb for _, _, verbs in PEOPLE for verb in verbs}
    rest = [verb for verb in helps if verb not in behind]
    if rest:
        lines += ["other:", *(f"  {verb:<12} {helps[verb]}" for verb in rest), ""]
    lines.append("limits of every verb that reads; `unlimited` takes one off:")
    lines += [f"  {f'{one.variable}={one.most}':<30} {one.counted}" for one in LIMITS.values()]
    return "\n".join(lines) + "\n\n" + CODES
