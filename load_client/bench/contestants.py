"""The clients that are compared: how each is started on a burst, and how its report is read.

The null server puts a number into the first content of a stream, so an answer can be compared with
the truth of that very stream. `StreamReport` holds what the client itself reports. Only ours keeps
the instant of every chunk on the clock of the truth; peers made to do so would use more CPU.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration.measure import CalibrationBurst, plan_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_NUMBER = re.compile(r"#(\d{6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstCell:
    """One load: a burst of `concurrency` with bodies of about `request_bytes`."""

    concurrency: int
    request_bytes: int
    ttft_ms: int = 500
    chunks: int = 64
    interval_ms: int = 20

    @property
    def name(self) -> str:
        """Such as N=32, 30 KB."""
        return f"N={self.concurrency}, {self.request_bytes // 1000} KB"


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What a client says of one stream: nanoseconds from its own start of the request."""

    number: int
    ttft_ns: int
    last_ns: int | None
    arrivals_ns: Sequence[int] = ()  # of every content chunk, on the host's monotonic clock


@dataclass(frozen=True, slots=True)
class Contestant:
    """A client: its command for a cell, and how its result is read."""

    name: str
    command: Callable[[BurstCell, str, Path], list[str]]
    read: Callable[[Path], list[StreamReport]]


def write_prompts(cell: BurstCell, out: Path) -> None:
    """Texts of the cell's size, each its own; what peers are given instead of token ids."""
    words = " ".join(f"{i % 99991:05d}" for i in range(cell.request_bytes // 6 - 1))
    texts = [f"w{number:04d} {words}" for number in range(cell.concurrency)]
    for key in ("prompt", "text"):
        lines = "".join(json.dumps({key: text}) + "\n" for text in texts)
        (out / f"{key}s.jsonl").write_text(lines, encoding="ascii")


def ours() -> Contestant:
    """The load client as a user starts it."""
    return Contestant("ours", _our_command, _read_ours)


def stdlib_peer() -> Contestant:
    """The standard library's way: urllib and threads."""

    def command(_cell: BurstCell, url: str, out: Path) -> list[str]:
        script = str(HERE / "urllib_client.py")
        return [sys.executable, script, url, str(out / "prompts.jsonl"), str(out / "said.json")]

    return Contestant("urllib", command, _read_said)


def installed_peers(environment: Path, vllm: Path | None) -> list[Contestant]:
    """The peers found: in an environment of their own, and vLLM by an engine's interpreter."""
    found: list[Contestant] = []
    python, tokenizer = environment / "bin" / "python", environment / "tokenizer"
    packages = next(environment.glob("lib/*/site-packages"), environment)

    def aiohttp(_cell: BurstCell, url: str, out: Path) -> list[str]:
        script = str(HERE / "aiohttp_client.py")
        return [str(python), script, url, str(out / "prompts.jsonl"), str(out / "said.json")]

    def bench_serve(cell: BurstCell, url: str, out: Path) -> list[str]:
        script = str(HERE / "vllm_client.py")
        words = [str(vllm), script, str(packages), "--backend", "openai", "--base-url", url]
        words += ["--endpoint", "/v1/completions", "--model", "null", "--tokenizer", str(tokenizer)]
        words += ["--dataset-name", "custom", "--dataset-path", str(out / "prompts.jsonl")]
        words += ["--skip-chat-template", "--custom-output-len", str(cell.chunks)]
        words += ["--num-prompts", str(cell.concurrency), "--request-rate", "inf"]
        words += ["--disable-shuffle", "--ready-check-timeout-sec", "0", "--disable-tqdm"]
        words += ["--save-result", "--save-detailed", "--result-dir", str(out)]
        return [*words, "--result-filename", "vllm.json"]

    def aiperf(cell: BurstCell, url: str, out: Path) -> list[str]:
        words = [str(environment / "bin" / "aiperf"), "profile", "--model", "null", "--url", url]
        words += ["--endpoint-type", "completions", "--streaming", "--tokenizer", str(tokenizer)]
        words += ["--input-file", str(out / "texts.jsonl")]
        words += ["--custom-dataset-type", "single_turn", "--export-level", "raw"]
        words += ["--concurrency", str(cell.concurrency), "--ui", "none", "--no-server-metrics"]
        words += ["--request-count", str(cell.concurrency), "--no-gpu-telemetry"]
        return [*words, "--output-artifact-dir", str(out / "aiperf")]

    if (packages / "aiohttp").is_dir():
        found.append(Contestant("aiohttp", aiohttp, _read_said))
    if vllm is not None:
        found.append(Contestant("vllm", bench_serve, _read_vllm))
    if (environment / "bin" / "aiperf").exists():
        found.append(Contestant("aiperf", aiperf, _read_aiperf))
    return found


def _our_command(cell: BurstCell, url: str, out: Path) -> list[str]:
    asked = CalibrationBurst(
        concurrency=cell.concurrency,
        request_bytes=cell.request_bytes,
        ttft_ns=cell.ttft_ms * 1_000_000,
        chunks=cell.chunks,
        interval_ns=cell.interval_ms * 1_000_000,
    )
    plan = plan_values(asked) | {"base_url": url}
    (out / "plan.json").write_text(json.dumps(plan), encoding="ascii")
    words = [sys.executable, "-m", "load_client", "run", "--quiet"]
    return [*words, "--plan", str(out / "plan.json"), "--out", str(out)]


def _read_ours(out: Path) -> list[StreamReport]:
    rows = map(json.loads, (out / "requests.jsonl").read_text(encoding="ascii").splitlines())
    arrivals_ns: defaultdict[str, list[int]] = defaultdict(list)
    for chunk in map(json.loads, (out / "chunks.jsonl").read_text(encoding="ascii").splitlines()):
        if chunk["kind"] == "content":
            arrivals_ns[chunk["request_id"]].append(chunk["arrival_ns"])
    return [
        StreamReport(
            _number(row["output_text"]),
            row["first_content_ns"] - row["sent_ns"],
            row["last_content_ns"] - row["sent_ns"],
            arrivals_ns[row["request_id"]],
        )
        for row in rows
        if row["outcome"] == "ok"
    ]


def _read_said(out: Path) -> list[StreamReport]:
    rows: Iterable[dict[str, Any]] = json.loads((out / "said.json").read_text())
    return [
        StreamReport(_number(row["text"]), row["ttft_ns"], row["last_ns"])
        for row in rows
        if row["ttft_ns"] is not None
    ]


def _read_vllm(out: Path) -> list[StreamReport]:
    result = json.loads((out / "vllm.json").read_text())
    said: list[StreamReport] = []
    parts = (result[name] for name in ("generated_texts", "ttfts", "itls"))
    for text, ttft_s, gaps_s in zip(*parts, strict=True):
        if text:
            last_s = ttft_s + sum(gaps_s)
            said.append(StreamReport(_number(text), round(ttft_s * 1e9), round(last_s * 1e9)))
    return said


def _read_aiperf(out: Path) -> list[StreamReport]:
    (path,) = out.glob("aiperf/**/*raw*.jsonl")
    said: list[StreamReport] = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        begin_ns = record["start_perf_ns"]
        content = [one["perf_ns"] for one in record["responses"] if _NUMBER.search(json.dumps(one))]
        if content:
            last_ns = record["responses"][-1]["perf_ns"] - begin_ns
            number = _number(json.dumps(record["responses"]))
            said.append(StreamReport(number, content[0] - begin_ns, last_ns))
    return said


def _number(text: str) -> int:
    match = _NUMBER.search(text)
    if match is None:
        raise ValueError(f"no stream number in {text[:80]!r}")
    return int(match[1])
