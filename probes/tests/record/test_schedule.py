from __future__ import annotations

import threading

from probes.record.schedule import Scheduler, Task, guarded
from probes.samples import Batch, Sample, Stopwatch

TENTH = 100_000_000


class FakeTime:
    """A clock that moves only when waited for, or when a sample is said to take time."""

    def __init__(self, *, ends_ns: int) -> None:
        self.now_ns = 5_000
        self._ends_ns = self.now_ns + ends_ns
        self.instants: list[int] = []

    def clock_ns(self) -> int:
        return self.now_ns

    def is_set(self) -> bool:
        return self.now_ns >= self._ends_ns

    def wait(self, timeout: float) -> bool:
        self.now_ns += round(timeout * 1e9)
        return self.is_set()


class FakeEvent(threading.Event):
    """Lets the scheduler wait on the fake clock."""

    def __init__(self, fake: FakeTime) -> None:
        super().__init__()
        self._fake = fake

    def is_set(self) -> bool:
        return self._fake.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._fake.wait(timeout or 0.0)


def _run(fake: FakeTime, costs_ns: list[int]) -> tuple[Task, list[int]]:
    instants: list[int] = []

    def sample() -> list[Batch]:
        instants.append(fake.now_ns - 5_000)
        fake.now_ns += costs_ns[len(instants) - 1] if len(instants) <= len(costs_ns) else 0
        return []

    task = Task(name="disk", period_ns=TENTH, sample=sample)
    Scheduler([task], lambda _: None, clock_ns=fake.clock_ns).run(FakeEvent(fake))
    return task, instants


def test_deadlines_do_not_drift_with_the_cost_of_the_samples() -> None:
    task, instants = _run(FakeTime(ends_ns=10 * TENTH), [30_000_000] * 20)
    assert instants[:10] == [tick * TENTH for tick in range(10)]
    assert task.missed_ticks == 0


def test_one_more_sample_is_taken_when_told_to_stop() -> None:
    _, instants = _run(FakeTime(ends_ns=2 * TENTH), [])
    assert instants == [0, TENTH, 2 * TENTH]


def test_ticks_slept_through_are_counted_and_not_made_up_for() -> None:
    # The second sample takes 3.5 periods: ticks 2 and 3 never start, tick 4 is only late.
    task, instants = _run(FakeTime(ends_ns=8 * TENTH), [0, TENTH * 7 // 2])
    assert instants[:4] == [0, TENTH, TENTH * 9 // 2, 5 * TENTH]
    assert task.missed_ticks == 2


def test_a_missed_tick_says_how_late_its_probe_was_and_after_what() -> None:
    fake = FakeTime(ends_ns=4 * TENTH)

    def slow() -> list[Batch]:
        fake.now_ns += TENTH * 5 // 2 if fake.now_ns < 5_000 + TENTH else 0
        return []

    disk = Task(name="disk", period_ns=TENTH, sample=list)
    nic = Task(name="nic", period_ns=10 * TENTH, sample=slow)
    Scheduler([disk, nic], lambda _: None, clock_ns=fake.clock_ns).run(FakeEvent(fake))
    assert disk.missed_ticks == 1
    assert disk.worst_late_ns == TENTH * 3 // 2
    assert disk.take_notes() == "1 missed, 150 ms late at 250005000, after nic took 250 ms"
    assert disk.take_notes() is None
    assert nic.missed_ticks == 0


def test_a_thread_that_slept_too_long_blames_no_probe() -> None:
    fake = FakeTime(ends_ns=8 * TENTH)
    real, naps = fake.wait, []

    def oversleep(timeout: float) -> bool:
        naps.append(timeout)
        return real(timeout * (4 if len(naps) == 2 else 1))

    fake.wait = oversleep  # type: ignore[method-assign]
    task, _ = _run(fake, [])
    assert (task.take_notes() or "").endswith("after waiting")


def test_a_recorder_that_is_always_late_keeps_a_few_notes_and_counts_all() -> None:
    task, _ = _run(FakeTime(ends_ns=100 * TENTH), [TENTH * 5 // 2] * 200)
    assert task.missed_ticks > 20
    assert len((task.take_notes() or "").split("; ")) == 8


def test_ticks_missed_until_the_very_end_are_counted_too() -> None:
    # The last sample before the end takes 4.5 periods, in which the end comes.
    task, instants = _run(FakeTime(ends_ns=2 * TENTH), [0, TENTH * 9 // 2])
    assert instants == [0, TENTH, TENTH * 11 // 2]
    assert task.missed_ticks == 3


def test_a_tick_that_is_late_by_less_than_a_period_is_not_missed() -> None:
    task, _ = _run(FakeTime(ends_ns=5 * TENTH), [TENTH * 3 // 2])
    assert task.missed_ticks == 0


def test_a_sample_that_raises_becomes_a_row_with_its_reason() -> None:
    def sample() -> list[Batch]:
        raise ZeroDivisionError("boom")

    taken = guarded("disk", sample)
    assert [row.reason for row in taken[0].samples] == ["failed: ZeroDivisionError: boom"]


def test_a_probe_that_always_raises_does_not_keep_the_others_from_sampling() -> None:
    fake = FakeTime(ends_ns=3 * TENTH)
    emitted: list[Batch] = []

    def bad() -> list[Batch]:
        raise OSError(5, "Input/output error")

    def good() -> list[Batch]:
        return [Stopwatch().batch("good", [Sample(device="-", counter="x", value=1)])]

    tasks = [
        Task(name="bad", period_ns=TENTH, sample=bad),
        Task(name="good", period_ns=TENTH, sample=good),
    ]
    Scheduler(tasks, emitted.append, clock_ns=fake.clock_ns).run(FakeEvent(fake))
    assert [sample.probe for sample in emitted].count("good") == 4
    assert [sample.probe for sample in emitted].count("bad") == 4
