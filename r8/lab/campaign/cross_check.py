"""One server, two load clients: ours and the engine's own, in turn, the same load each time."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from r8.errors import InstrumentError, SiteError
from r8.lab.campaign import engine
from r8.lab.campaign.lifetime import EngineLifetime
from r8.lab.instruments.clients import client_argv
from r8.lab.instruments.probes import instrument
from r8.lab.machine import commands
from r8.lab.machine.hosts import engine_is_remote
from r8.lab.testbed import prepare
from r8.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.lab.campaign.engine import RunningEngine
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.arms import Plan
    from r8.lab.site.file import LoadedSite
    from r8.lab.testbed import Testbed

OURS = "load_client"
THEIRS = "vllm bench serve"
SCRIPT = Path(__file__).parents[1] / "rehearsal" / "bench_serve.py"
BENCH_TIMEOUT_S = 600.0
SEED = 8
# First-use costs belong to no client: one burst of ours that is not counted.
UNCOUNTED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one client said of one burst; `ttft_s` in its own order."""

    tool: str
    round: int
    ttft_s: tuple[float, ...]
    prompt_tokens: tuple[int, ...]  # by the server's usage
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A running server and what both clients need to know of it."""

    running: RunningEngine
    plan: Plan
    python: list[str]  # the engine's
    tokenizer: str
    level: int
    out: Path

    def prompts_of(self, burst: int) -> list[int]:
        """Sessions of one burst: none is sent twice."""
        return list(range(burst * self.level, (burst + 1) * self.level))


def bursts(bench: Bench, rounds: int) -> Iterator[Burst]:
    """Both clients in turn, the first one of a round changing; rounds count from 1."""
    _ours(bench, UNCOUNTED, UNCOUNTED)
    number = UNCOUNTED
    for round_ in range(1, rounds + 1):
        for client in (_ours, _theirs) if round_ % 2 else (_theirs, _ours):
            number += 1
            yield client(bench, round_, number)


def _ours(bench: Bench, round_: int, number: int) -> Burst:
    plan, out = bench.plan, bench.out / f"burst-{number}-ours"
    out.mkdir(parents=True)
    path = out / "plan.json"
    path.write_text(
        json.dumps(
            {
                "phase": "measure",
                "instance": bench.running.instance,
                "base_url": bench.running.base_url,
                "model": plan.model_name,
                "profile": plan.profile,
                "shape": "burst",
                "concurrency": bench.level,
                "sessions": bench.prompts_of(number),
                "seed": SEED,
                "prompt_tokens": plan.prompt_tokens,
                "output_tokens": plan.output_tokens,
                "vocab": list(plan.vocab),
                "timeout_s": plan.request_timeout_s,
            }
        )
    )
    instrument(client_argv(path, out))
    rows = [json.loads(line) for line in (out / "requests.jsonl").read_text().splitlines()]
    good = [row for row in rows if row["outcome"] == "ok"]
    return Burst(
        tool=OURS,
        round=round_,
        ttft_s=tuple((row["first_content_ns"] - row["sent_ns"]) / 1e9 for row in good),
        prompt_tokens=tuple(row["prompt_tokens"] for row in good),
        failed=len(rows) - len(good),
    )


def _theirs(bench: Bench, round_: int, number: int) -> Burst:
    plan, out = bench.plan, bench.out / f"burst-{number}-theirs"
    out.mkdir(parents=True)
    prompts, result = out / "prompts.json", out / "result.json"
    ids = [_token_ids(plan, session) for session in bench.prompts_of(number)]
    prompts.write_text(json.dumps(ids))
    argv = [*bench.python, "-W", "ignore", str(SCRIPT), "--tokenizer", bench.tokenizer]
    argv += ["--prompts", str(prompts), "--base-url", bench.running.base_url]
    argv += ["--model", plan.model_name, "--output-tokens", str(plan.output_tokens)]
    done = commands.run([*argv, "--result", str(result)], timeout_s=BENCH_TIMEOUT_S)
    if not done.ok or not result.is_file():
        raise InstrumentError(
            f"the engine's own load client failed: {done.error or done.output[-400:]}",
            where=done.line,
            next_step="run it by hand",
        )
    found: dict[str, Any] = json.loads(result.read_text())
    pairs = [
        (ttft, tokens)
        for ttft, tokens, error in zip(
            found["ttfts"], found["input_lens"], found["errors"], strict=True
        )
        if not error
    ]
    return Burst(
        tool=THEIRS,
        round=round_,
        ttft_s=tuple(ttft for ttft, _ in pairs),
        prompt_tokens=tuple(tokens for _, tokens in pairs),
        failed=len(ids) - len(pairs),
    )


def _token_ids(plan: Plan, session: int) -> list[int]:
    """A prompt of the plan's length and vocabulary that no other session shares."""
    low, high = plan.vocab
    draw = random.Random(f"{SEED}/{session}")  # noqa: S311 - for no secret
    return [draw.randrange(low, high) for _ in range(plan.prompt_tokens)]


def _served(loaded: LoadedSite, wanted: str | None) -> tuple[str, str]:
    """A scenario and its arm of that name; without a name, one that recomputes.

    Recomputed prompts cost the same in any number of bursts, and no cache decides.
    """
    for scenario, plan in loaded.site.scenarios.items():
        for name in plan.every_arm:
            if name == wanted or (not wanted and loaded.site.arms[name].role is Role.RECOMPUTE):
                return scenario, name
    raise SiteError(
        f"no scenario runs {f'an arm {wanted}' if wanted else 'an arm with the role recompute'}",
        where=str(loaded.path),
        next_step="name another with --arms, or add one to a table of [scenarios]",
    )


@contextlib.contextmanager
def serving(
    loaded: LoadedSite,
    wanted: str | None,
    level: int,
    supervisor: Supervisor,
    out: Path,
    say: Callable[[str], None],
) -> Iterator[Bench]:
    """One engine of an arm, ready to be asked; it is ended afterwards.

    Raises:
        SiteError: no scenario runs that arm, or the engine runs on another host: its client would
            have to run there as well.

    """
    site = loaded.site
    scenario, name = _served(loaded, wanted)
    plan, arm = site.scenarios[scenario], site.arms[name]
    out.mkdir(parents=True)
    instance = site.instance(plan.instances[0])
    if engine_is_remote(site, instance.host):
        raise SiteError(
            "the cross-check starts the engine's own client beside it",
            where=f"instance {instance.name} on {site.host_of(instance.name)}",
            next_step="run R8 on that host, with a site file without exec_prefix",
        )
    with prepare(loaded, scenario, supervisor, say) as testbed:
        lifetime = EngineLifetime(
            testbed=testbed,
            plan=msgspec.structs.replace(plan, instances=(instance.name,)),
            arm=arm,
            home=out / "engine",
            kv_dir=str(testbed.kv_roots[arm.device] / "r8-cross-check"),
        )
        say("engine start")
        try:
            lifetime.start()
            (running,) = lifetime.engines
            engine.wait_ready(running, site.engine.ready_path, site.engine.ready_timeout_s)
            yield Bench(
                running=running,
                plan=plan,
                python=testbed.python(),
                tokenizer=_tokenizer(testbed),
                level=level,
                out=out,
            )
        finally:
            lifetime.stop_engines()  # its pool goes with the supervisor, its log stays


def _tokenizer(testbed: Testbed) -> str:
    names = testbed.site.vars | testbed.fillings
    for key in ("model_dir", "model"):
        if key in names:
            return names[key]
    raise SiteError(
        "no model_dir to take the tokenizer from",
        where=f"[vars] of {testbed.site.name}",
        next_step='add model_dir = "/path/of/the/model"',
    )
