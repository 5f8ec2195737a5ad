"""The style sheet of a report: light and dark, screen and paper, readable without colour."""

from __future__ import annotations

from pathlib import Path

# Every pair of text and ground has a contrast of 4.5 or more; a test computes it.
LIGHT = {
    "ground": "#ffffff",
    "panel": "#f5f6f8",
    "ink": "#1b1f24",
    "quiet": "#565e68",
    "rule": "#d4d9df",
    "link": "#0b57a4",
    "good": "#0f6b3c",
    "good-ground": "#e3f4ea",
    "bad": "#a3160f",
    "bad-ground": "#fde8e6",
    "open": "#7a4b00",
    "open-ground": "#fdf1d8",
    "none": "#4a525c",
    "none-ground": "#e9ecf0",
    "a0": "#0c3c78",
    "a1": "#c25a00",
    "a2": "#2f8f74",
    "a3": "#8a4fa8",
    "a4": "#6b6b6b",
    "allowed": "#e2e6eb",
    "cold": "#dcecff",
    "warm": "#fff0d6",
}
DARK = {
    "ground": "#14171b",
    "panel": "#1d2126",
    "ink": "#e9ecef",
    "quiet": "#a9b2bc",
    "rule": "#363d45",
    "link": "#8cc0ff",
    "good": "#7fdca6",
    "good-ground": "#123522",
    "bad": "#ffa79f",
    "bad-ground": "#441614",
    "open": "#f5c96a",
    "open-ground": "#3a2a08",
    "none": "#b9c1ca",
    "none-ground": "#2a3037",
    "a0": "#7fb6ff",
    "a1": "#ffb26b",
    "a2": "#6fd3b5",
    "a3": "#d3a4ef",
    "a4": "#b5b5b5",
    "allowed": "#2b3239",
    "cold": "#17304d",
    "warm": "#3d3013",
}
_RULES = Path(__file__).with_name("page.css")


def style_sheet() -> str:
    """The whole sheet; paper is always light."""
    light, dark = _variables(LIGHT), _variables(DARK)
    rules = _RULES.read_text(encoding="utf-8").strip()
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{rules}"
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
