"""The LMCache disk backend alone, without an engine, beside what fio gets from the same device.

Every figure is a ratio inside one run: absolute times of a shared machine mean nothing. `--blocks`
is the number of rounds, each with every arm once in Williams order.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tabulate import tabulate

from r8.errors import R8Error, SiteError
from r8.lab.component.runs import ChunkReads, device_ceiling, run_component
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site
from r8.lab.site.plan import steps, williams_rows
from r8.lab.testbed import prepare
from r8.scenarios.test_r1_parallel_read import SCENARIO as BENCHED
from r8.units import BYTES_PER_MIB, NS_PER_S, mb_per_s, s_from_ns
from r8.verdict.intervals import Interval, log_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site.arms import Arm
    from r8.lab.site.file import LoadedSite
    from r8.lab.testbed import Testbed

# At 200 MB/s this is seven seconds of reading; the tail of one latency is far below a percent.
OPTIONS = ("--site", "--runs-root", "--blocks", "--order-seed")
CHUNK_BYTES = 32 * BYTES_PER_MIB
CHUNKS = 42
# The serial arm is a fifth as fast: fewer chunks give it the same seconds.
SERIAL_CHUNKS = 10
# The bars of the issue this bench answers: close to the device, and no worse than upstream's pool.
CEILING_SHARE = 0.95
NOT_INFERIOR = 0.95
SINGLE_CHUNK_BYTES = 64 * BYTES_PER_MIB
SINGLE_CHUNK_SHARE = 0.95
SINGLE_CHUNKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A prepared testbed, the arms to read with, and how many rounds to run."""

    testbed: Testbed
    arms: dict[str, Arm]
    rounds: int
    seed: int

    @property
    def patched(self) -> str:
        """The arm that carries our patch."""
        return next(name for name, arm in self.arms.items() if arm.is_patched)

    @property
    def rivals(self) -> list[str]:
        """Arms of other readers that read in parallel."""
        return [
            name
            for name, arm in self.arms.items()
            if arm.reads == "parallel" and not arm.is_patched
        ]


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The testbed of the site with every arm of the scenario, taken down afterwards."""
    config = request.config
    with contextlib.ExitStack() as stack:
        try:
            loaded = load_site(config.getoption("--site"))
            supervisor = stack.enter_context(
                Supervisor(config.getoption("--runs-root") / ".supervisor")
            )
            arms = _arms(loaded)
            testbed = stack.enter_context(prepare(loaded, BENCHED.name, supervisor, print))
            for device in dict.fromkeys(arm.device for arm in arms.values()):
                testbed.calibration(device, 0)
        except R8Error as error:
            stack.close()
            pytest.exit(f"{type(error).__name__}: {error}", returncode=error.exit_code)
        rounds = config.getoption("--blocks") or len(williams_rows(tuple(arms)))
        seed = config.getoption("--order-seed")
        yield Bench(testbed=testbed, arms=arms, rounds=rounds, seed=seed)


def _arms(loaded: LoadedSite) -> dict[str, Arm]:
    """The arms of the scenario.

    Raises:
        SiteError: the site does not plan it, or none of its arms is patched.

    """
    plan = loaded.site.scenarios.get(BENCHED.name)
    arms = {name: loaded.site.arms[name] for name in plan.every_arm} if plan else {}
    if not any(arm.is_patched for arm in arms.values()):
        raise SiteError(
            f"no patched arm of {BENCHED.name}",
            where=str(loaded.path),
            next_step=f"plan one in [scenarios.{BENCHED.name}]",
        )
    return arms


def _rates(bench: Bench, reads: ChunkReads) -> dict[str, list[float]]:
    """Bytes/s of the device and of every arm, one value a round."""
    rates: dict[str, list[float]] = {"device": [], **{arm: [] for arm in bench.arms}}
    device = next(iter(bench.testbed.drops))
    for step in steps(tuple(bench.arms), bench.rounds, bench.seed):
        if step.order == 0:
            reading = device_ceiling(reads, list(bench.testbed.drops[device]))
            rates["device"].append(reading.bytes_per_s)
        arm = bench.arms[step.arm]
        chunks = SERIAL_CHUNKS if arm.reads == "serial" else reads.chunks
        less = replace(reads, chunks=chunks, batch_chunks=chunks)
        result = run_component(bench.testbed, step.arm, arm, less)
        rate = result["read_bytes"] * NS_PER_S / result["elapsed_ns"]
        print(f"round {step.block} {step.arm}: {mb_per_s(rate):.1f} MB/s")
        rates[step.arm].append(rate)
    return rates


def _ratio(ours: list[float], theirs: list[float]) -> Interval | None:
    """Paired by round; None for a single round, which has no spread."""
    return log_interval([one / other for one, other in zip(ours, theirs, strict=True)])


def _shown(ratio: Interval | None) -> str:
    if ratio is None:
        return "one round: no interval"
    return f"{ratio.estimate:.3f} ({ratio.low:.3f}..{ratio.high:.3f})"


def _show(title: str, rates: dict[str, list[float]]) -> None:
    rows = []
    for name, values in rates.items():
        shown = ", ".join(f"{mb_per_s(value):.1f}" for value in values)
        share = _ratio(values, rates["device"])
        rows.append([name, shown, _shown(share), len(values)])
    headers = ["reader", "MB/s by round", "of the device (90 % interval)", "n"]
    print(f"\n{title}\n{tabulate(rows, headers=headers, disable_numparse=True)}")


def test_the_patch_reads_a_shaped_device_at_its_ceiling(bench: Bench) -> None:
    """At least 0.95 of fio's best in the same round, and not inferior to other parallel readers."""
    root = next(iter(bench.testbed.kv_roots.values()))
    reads = ChunkReads(directory=root, chunk_bytes=CHUNK_BYTES, chunks=CHUNKS, batch_chunks=CHUNKS)
    rates = _rates(bench, reads)
    _show(f"shaped device ({bench.testbed.note}), basis modelled", rates)
    share = _ratio(rates[bench.patched], rates["device"])
    print(f"{bench.patched} of the device: {_shown(share)}")
    assert share is not None, "one round cannot be judged: --blocks 2 or more"
    assert share.estimate >= CEILING_SHARE
    for rival in bench.rivals:
        against = _ratio(rates[bench.patched], rates[rival])
        print(f"{bench.patched} of {rival}: {_shown(against)}")
        assert against is not None
        # Each end carries 5 %: `low` is the one-sided 95 % bound.
        assert against.low >= NOT_INFERIOR


def test_one_chunk_alone_is_read_in_parallel(bench: Bench) -> None:
    """A reader that is parallel across files only would stay at the serial speed here."""
    root = next(iter(bench.testbed.kv_roots.values()))
    reads = ChunkReads(
        directory=root, chunk_bytes=SINGLE_CHUNK_BYTES, chunks=SINGLE_CHUNKS, batch_chunks=1
    )
    device = next(iter(bench.testbed.drops))
    ceiling = device_ceiling(reads, list(bench.testbed.drops[device])).bytes_per_s
    control = bench.testbed.controls.get(device)
    if control is None:
        pytest.skip("the device is not shaped here: there is no latency to bound it by")
    latency_s = s_from_ns(control.shape().read_latency_ns)
    bound_s = latency_s + SINGLE_CHUNK_BYTES / ceiling
    result = run_component(bench.testbed, bench.patched, bench.arms[bench.patched], reads)
    times_s = sorted(
        (one["end_mono_ns"] - one["begin_mono_ns"]) / NS_PER_S for one in result["batches"]
    )
    median_s = times_s[len(times_s) // 2]
    print(
        f"\none 64 MiB chunk: bound {bound_s * 1e3:.1f} ms (latency {latency_s * 1e3:.1f} ms, "
        f"ceiling {mb_per_s(ceiling):.1f} MB/s), median {median_s * 1e3:.1f} ms of "
        f"{len(times_s)}, share {bound_s / median_s:.3f}, basis modelled"
    )
    assert bound_s / median_s >= SINGLE_CHUNK_SHARE


def test_the_patch_is_not_slower_on_the_machines_own_disk(
    bench: Bench, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Unshaped: no arm may be faster than the patch beyond noise; its share of fio is printed."""
    home = request.config.getoption("--runs-root")
    directory = Path(home) / f".bench-{tmp_path.name}"
    directory.mkdir(parents=True)
    try:
        reads = ChunkReads(directory=directory, chunk_bytes=CHUNK_BYTES, chunks=16, batch_chunks=16)
        rates = _rates(bench, reads)
    finally:
        directory.rmdir()
    _show("own disk, unshaped, basis measured", rates)
    for arm in bench.arms:
        ratio = _ratio(rates[bench.patched], rates[arm])
        print(f"{bench.patched} over {arm}: {_shown(ratio)}")
        assert ratio is None or ratio.high >= 1.0, f"{bench.patched} is slower than {arm}: {ratio}"
