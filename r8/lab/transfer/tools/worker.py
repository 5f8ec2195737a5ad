"""The worker's end of the protocol of `r8/lab/transfer/worker_pool.py`; standard library only."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Between two answers of a model that serves: it shall be seen to work, not to burn shared cores.
SERVE_PAUSE_S = 0.02


def options(doc: str | None) -> argparse.Namespace:
    """`--device`, where the bytes end, and `--answers`, the file for answers."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--answers", type=Path, required=True)
    return parser.parse_args()


def serve(answers: Path, facts: dict[str, Any], answer: Callable[[dict[str, Any]], Any]) -> int:
    """Say that all is imported, then carry out one order after another until the input ends."""
    _say(answers, {"ready": True, "pid": os.getpid(), **facts})
    for line in sys.stdin:
        order = json.loads(line)
        _say(answers, {"order": order["order"], **answer(order)})
    return 0


def outcome(
    carry_out: Callable[[dict[str, Any]], dict[str, Any]], order: dict[str, Any]
) -> dict[str, Any]:
    """The row of one order, which begins at its instant; a failure is a row as well."""
    while (left_ns := int(order["start_ns"]) - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)
    try:
        return {**carry_out(order), "outcome": "ok"}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this order's outcome
        empty: dict[str, Any] = dict.fromkeys(("begin_ns", "end_ns", "bytes", "files"))
        return {**empty, "outcome": "failed", "error": f"{type(error).__name__}: {error}"}


def _say(answers: Path, row: dict[str, Any]) -> None:
    with answers.open("a") as sink:
        sink.write(json.dumps(row) + "\n")
