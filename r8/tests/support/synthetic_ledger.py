"""Synthetic ledgers: made-up truth, printed by rounding, and thirty ways to plant one fault.

Nothing here was published. Every derived figure is computed from the unrounded truth and rounded
afterwards, as a careful author would do it, so a clean ledger has no finding whatever the seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.claims.ledger import ADDED, COLUMNS, FIGURES, FORMAT, RELATIONS, load_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.claims.ledger import Ledger

# Every sentence that says the printed numbers agree.
SENTENCES_THAT_HOLD = {
    *("a1-follows", "a2-follows", "a3-follows", "a4-follows", "a5-base-follows", "a5-decimal"),
    *("a6-follows", "a7-follows", "a8-whole", "a8-equal", "a8-enough", "a9-within"),
    *("a10-saved", "a10-faster", "a10-either", "a11-follows"),
}
PLATFORM, OTHER_PLATFORM = "machine A", "machine B"
ABOUT = {"en": "decimal by its tool", "zh": "按其工具为十进制"}
LEVELS = ("c16", "c32", "c128")
ARMS = ("array", "local")
# Geometry of the synthetic cache: bytes of one session.
LAYERS, HEADS, WIDTH, VALUE_BYTES = 48, 8, 128, 2


@dataclass
class Synthetic:
    """Rows and relations, both still editable."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    relations: list[str] = field(default_factory=list)

    def add(
        self, figure_id: str, value: float | None, unit: str, decimals: int, **more: str
    ) -> None:
        """One row; the value is printed with so many decimals."""
        text = "" if value is None else f"{value:.{decimals}f}"
        row = dict.fromkeys((*COLUMNS, "restates"), "") | {
            "figure_id": figure_id,
            "report": "S1",
            "where": "page 1",
            "platform": PLATFORM,
            "scenario": "made-up",
            "arm": figure_id,
            "metric": "reading",
            "value": text,
            "unit": unit,
            "as_printed": text if value is not None else "not published",
            "basis": "measured",
        }
        self.rows[figure_id] = row | more

    def reprint(self, figure_id: str, value: float, decimals: int) -> None:
        """Give a row another value, printed anew."""
        text = f"{value:.{decimals}f}"
        self.rows[figure_id] |= {"value": text, "as_printed": text}

    def relate(self, kind: str, **keys: object) -> None:
        """One relation; text and lists are written as TOML."""
        lines = ["[[relation]]", f'kind = "{kind}"']
        lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
        self.relations.append("\n".join(lines))

    def write(self, folder: Path) -> Ledger:
        """The ledger as files, read back by the real reader."""
        folder.mkdir(parents=True, exist_ok=True)
        names = (*COLUMNS, "restates")
        lines = [",".join(names)]
        lines += [",".join(f'"{row[name]}"' for name in names) for row in self.rows.values()]
        (folder / FIGURES).write_text("\n".join(lines) + "\n")
        (folder / ADDED).unlink(missing_ok=True)
        (folder / RELATIONS).write_text(
            f"format = {FORMAT}\n\n" + "\n\n".join(self.relations) + "\n"
        )
        return load_ledger(folder)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    return str(value) if isinstance(value, int) else f'"{value}"'


def clean(seed: int) -> Synthetic:
    """A ledger without a fault."""
    dice = random.Random(seed)  # noqa: S311  # made-up readings
    made = Synthetic()
    _readings(made, dice)
    _sizes(made, dice)
    _speeds(made, dice)
    _repeats(made, dice)
    _model(made, dice)
    return made


def _readings(made: Synthetic, dice: random.Random) -> None:
    """Readings of two arms, what is derived from them, a range over it, rows printed again."""
    changes = []
    for level in LEVELS:
        truth = {arm: dice.uniform(5, 40) for arm in ARMS}
        for arm in ARMS:
            cell = {"arm": arm, "level": level}
            name = f"s.{arm}.{level}"
            made.add(f"{name}.ttft", truth[arm], "s", 2, metric="ttft", statistic="p50", **cell)
            made.add(
                f"{name}.p90", truth[arm] * 1.01, "s", 2, metric="ttft", statistic="p90", **cell
            )
        ratio = truth["local"] / truth["array"]
        above, below = (f"s.{arm}.{level}.ttft" for arm in ("local", "array"))
        made.add(f"s.gain.{level}", ratio, "x", 1, formula=f"{above} / {below}", basis="derived")
        changes.append(100 * (truth["array"] / truth["local"] - 1))
        made.add(
            f"s.change.{level}",
            changes[-1],
            "%",
            0,
            formula=f"{below} / {above} - 1",
            basis="derived",
            page_label="Measured",
        )
    for name, ends in (("low", min), ("high", max)):
        printed = f"{min(changes):.0f} to {max(changes):.0f}"
        value = f"{ends(changes):.0f}"
        made.add(f"s.range.{name}", ends(changes), "%", 0, basis="derived")
        made.rows[f"s.range.{name}"] |= {
            "value": value,
            "as_printed": printed,
            "statistic": name,
            "arm": "range",
            "formula": f"{name.replace('low', 'min').replace('high', 'max')}(s.change.*)",
        }
    made.relate("range", figures=["s.range.low", "s.range.high"], members=["s.change.*"])
    first = made.rows["s.array.c16.ttft"]
    made.add("s.text", float(first["value"]), "s", 2, restates="s.array.c16.ttft")
    made.add("s.again", float(first["value"]), "s", 2)
    made.relate("same", figures=["s.array.c16.ttft", "s.again"])


def _sizes(made: Synthetic, dice: random.Random) -> None:
    """A cache size and its geometry; a save whose time, rate and size belong together."""
    tokens = 256 * dice.randint(20, 200)
    size = 2 * LAYERS * HEADS * WIDTH * VALUE_BYTES * tokens
    made.add("z.tokens", tokens, "tokens", 0)
    made.add("z.value_bytes", VALUE_BYTES, "B", 0, basis="specification")
    made.add("z.session", size / 1e9, "GB", 3, arm="session")
    formula = f"2 * {LAYERS} * {HEADS} * {WIDTH} * z.value_bytes * z.tokens"
    made.relate("size", figures=["z.session"], bytes=formula)
    copies, save, snapshot = dice.randint(2, 9), dice.uniform(60, 90), dice.uniform(40, 80)
    made.add("z.save", save, "s", 1, metric="save_time")
    made.add("z.snapshot", snapshot, "GB", 1, metric="snapshot_size")
    made.add("z.rate", copies * snapshot / save, "GB/s", 3, metric="write_bandwidth")
    made.relate(
        "whole", figures=["z.save", "z.rate", "z.snapshot"], number="z.save * z.rate / z.snapshot"
    )
    made.relate(
        "identity",
        figures=["z.rate"],
        left="z.rate * z.save",
        right=f"{copies} * z.snapshot",
        unit="GB",
    )
    made.relate(
        "identity",
        figures=["z.rate"],
        left="2 * z.rate * z.save",
        right=f"{copies} * z.snapshot",
        unit="GB",
        at_least="left",
    )


def _speeds(made: Synthetic, dice: random.Random) -> None:
    """Rates below the port and the slot that carry them; a rate whose GB is stated."""
    made.add("v.port", 100, "Gb/s", 0, basis="specification")
    made.add("v.peak", dice.uniform(7, 11), "GB/s", 2, metric="peak")
    made.add("v.wire", dice.uniform(60, 90), "Gb/s", 1, metric="wire")
    made.add("v.drive", dice.uniform(3, 7), "GB/s", 2, metric="drive")
    made.relate("ceiling", figures=["v.peak", "v.wire"], limit="v.port")
    made.relate("ceiling", figures=["v.drive"], limit="4 * 16 * 128 / 130", unit="Gb/s")
    made.relate("base", figures=["v.peak"], bytes=10**9, about=ABOUT)


def _repeats(made: Synthetic, dice: random.Random) -> None:
    """The same cells read twice, closer than the stated deviation."""
    made.add("d.stated", 5, "%", 0, metric="stated")
    for number in range(4):
        value = dice.uniform(20, 80)
        other = value * (1 + dice.uniform(-0.04, 0.04))
        made.add(f"d.later.{number}", value, "tok/s", 1)
        made.add(f"d.earlier.{number}", other, "tok/s", 1)
    made.relate("pair", first="d.later.*", second="d.earlier.$1", stated="d.stated")
    made.relate("instances", scenario="made-up", n=2)
    cell = {"metric": "itl", "level": "c128", "statistic": "p90 of instance A"}
    made.add("d.instance", dice.uniform(20, 30), "ms", 1, **cell)


def _model(made: Synthetic, dice: random.Random) -> None:
    """Two utilisations and the gain they imply; a figure of another platform."""
    before = dice.uniform(80, 120)
    saved = dice.uniform(0.2, 0.4)
    after = before * (1 - saved)
    cell = {"basis": "modelled", "page_label": "Modelled"}
    made.add("u.switches", 20, "switches", 0, basis="specification")
    made.add("u.before", 100 * (1 - 20 * before / 3600), "%", 1, **cell)
    made.add("u.after", 100 * (1 - 20 * after / 3600), "%", 1, **cell)
    made.add("u.saved", 100 * saved, "%", 0)
    made.relate(
        "utilisation",
        figures=["u.before", "u.after"],
        before="u.before",
        after="u.after",
        switches="u.switches",
        saved="u.saved",
    )
    other = {"platform": OTHER_PLATFORM}
    made.add("w.first", 50, "s", 1, **other)
    made.add("w.second", 25, "s", 1, **other)
    made.add("w.ratio", 2, "x", 1, formula="w.first / w.second", basis="derived", **other)


def _number(made: Synthetic, name: str) -> float:
    return float(made.rows[name]["value"])


def _set(name: str, **changes: str) -> Callable[[Synthetic], None]:
    return lambda made: made.rows[name].update(changes)


def _times(name: str, factor: float, decimals: int) -> Callable[[Synthetic], None]:
    return lambda made: made.reprint(name, _number(made, name) * factor, decimals)


def _plus(name: str, amount: float, decimals: int) -> Callable[[Synthetic], None]:
    return lambda made: made.reprint(name, _number(made, name) + amount, decimals)


def _outside(amount: float) -> Callable[[Synthetic], None]:
    """Another cell, far from all others, that the range does not name."""

    def plant(made: Synthetic) -> None:
        made.add("s.change.c64", amount, "%", 0, basis="derived")
        for name in ("low", "high"):
            made.rows[f"s.range.{name}"]["formula"] = ""

    return plant


def _unreached(made: Synthetic) -> None:
    value = _number(made, "s.range.high") + 7
    made.rows["s.range.high"] |= {"value": f"{value:.0f}", "formula": ""}
    made.rows["s.range.high"]["as_printed"] = f"{value:.0f}"


def _binary(made: Synthetic) -> None:
    made.reprint("z.session", _number(made, "z.session") * 1e9 / 2**30, 3)


def _base(made: Synthetic) -> None:
    made.relations = [one.replace("1000000000", "1024000000") for one in made.relations]


def _duplicate(made: Synthetic) -> None:
    made.rows["s.dup"] = made.rows["s.array.c32.ttft"] | {"figure_id": "s.dup"}
    made.reprint("s.dup", _number(made, "s.dup") + 0.5, 2)


def _merge(made: Synthetic) -> None:
    value = _number(made, "z.save") / _number(made, "w.second")
    made.add("x.mixed", value, "x", 2, formula="z.save / w.second", basis="derived")


def _merge_other(made: Synthetic) -> None:
    value = _number(made, "w.first") / _number(made, "z.save")
    more = {"basis": "derived", "platform": OTHER_PLATFORM}
    made.add("x.mixed", value, "x", 2, formula="w.first / z.save", **more)


def _on_model(made: Synthetic) -> None:
    value = _number(made, "u.after") / _number(made, "u.before")
    more = {"basis": "derived", "page_label": "Measured"}
    made.add("x.model", value, "x", 2, formula="u.after / u.before", **more)


def _percentile(level: str, statistic: str) -> Callable[[Synthetic], None]:
    more = {"metric": "e2e", "level": level, "statistic": statistic}
    return lambda made: made.add("x.tail", 30, "s", 1, **more)


def _pair(ratio: float) -> Callable[[Synthetic], None]:
    def plant(made: Synthetic) -> None:
        made.reprint("d.earlier.1", 1000.0, 1)
        made.reprint("d.later.1", 1000.0 * ratio, 1)

    return plant


# Rule, a figure the finding must name, what is planted.
FAULTS: tuple[tuple[str, str, Callable[[Synthetic], None]], ...] = (
    ("A1", "s.gain.c16", _plus("s.gain.c16", 0.2, 1)),
    ("A1", "s.gain.c32", _plus("s.gain.c32", -0.2, 1)),
    ("A1", "w.ratio", _plus("w.ratio", 0.2, 1)),
    ("A2", "z.rate", _set("z.rate", basis="estimated", page_label="Measured")),
    ("A2", "u.before", _set("u.before", page_label="Measured")),
    ("A2", "x.model", _on_model),
    ("A3", "s.text", _plus("s.text", 0.3, 2)),
    ("A3", "s.again", _plus("s.again", -0.02, 2)),
    ("A3", "s.dup", _duplicate),
    ("A4", "s.change.c64", _outside(900)),
    ("A4", "s.change.c64", _outside(-900)),
    ("A4", "s.range.high", _unreached),
    ("A5", "z.session", _binary),
    ("A5", "v.peak", _base),
    ("A5", "z.session", _times("z.session", 1.3, 3)),
    ("A6", "v.peak", _set("v.peak", value="12.60", as_printed="12.60")),
    ("A6", "v.wire", _set("v.wire", value="100.6", as_printed="100.6")),
    ("A6", "v.drive", _set("v.drive", value="7.89", as_printed="7.89")),
    ("A7", "x.tail", _percentile("c16", "p99")),
    ("A7", "x.tail", _percentile("c8", "p90")),
    ("A7", "x.tail", _percentile("c16", "p90 of instance B")),
    (
        "A8",
        "z.rate",
        lambda made: made.relate(
            "whole", figures=["z.rate"], number="z.save * z.rate / z.snapshot + 1 / 2"
        ),
    ),
    (
        "A8",
        "z.rate",
        lambda made: made.relate(
            "identity",
            figures=["z.rate"],
            left="z.rate * z.save",
            right="z.rate * z.save * 11 / 10",
        ),
    ),
    (
        "A8",
        "z.rate",
        lambda made: made.relate(
            "identity",
            figures=["z.rate"],
            left="z.rate * z.save",
            right="2 * z.rate * z.save",
            at_least="left",
        ),
    ),
    ("A9", "d.later.1", _pair(1.06)),
    ("A9", "d.later.1", _pair(1.051)),
    ("A10", "u.after", _plus("u.after", 4.0, 1)),
    ("A10", "u.after", _plus("u.after", -4.0, 1)),
    ("A11", "x.mixed", _merge),
    ("A11", "x.mixed", _merge_other),
)
