"""One lost card is one reason: the others are read, numbers may shift, and it may come back."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from probes.gpu.amdgpu import AMDGPU
from probes.gpu.ask import MAX_CARDS, ask
from probes.gpu.nvidia_smi import NVIDIA_SMI
from probes.gpu.nvml import open_nvml
from probes.gpu.probe import GONE, TOOL_PERIOD_NS, GpuSampler
from probes.gpu.sources import TOOLS
from probes.tests.support.captures import capture
from probes.tests.support.kernel_trees import AMD_ADDRESS, amd_tree
from probes.tests.support.samplers import rows, rows_by_device
from probes.tool import ToolRun

if TYPE_CHECKING:
    from pathlib import Path

    from probes.gpu.card import Page

BUSES = tuple(f"0000:{bus}:00.0" for bus in ("1d", "1e", "3f", "40"))


class GpuIsLostError(Exception):
    """The library's error, by another name."""


class Box:
    """NVML of a box whose cards come and go: a handle dies with its card and stays dead."""

    def __init__(self, lost: set[str], *, counted: tuple[str, ...] = BUSES) -> None:
        self.lost = lost
        self.counted = counted
        self.resets = 0

    def nvmlInit(self) -> None: ...  # noqa: N802 - the library's names

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.counted)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        return self._handle(self.counted[index])

    def nvmlDeviceGetHandleByPciBusId(self, address: bytes) -> Any:  # noqa: N802
        return self._handle(address.decode())

    def _handle(self, bus: str) -> Any:
        if bus in self.lost:
            raise GpuIsLostError("GPU is lost")
        return SimpleNamespace(bus=bus, resets=self.resets)

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"0000{handle.bus.upper()}")

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
        if handle.bus in self.lost or handle.resets != self.resets:
            raise GpuIsLostError("GPU is lost")
        return SimpleNamespace(used=2 << 30, total=24 << 30)


def used(page: Page) -> dict[str, float | None]:
    return {card.device: card.values.get("vram_used_bytes") for card in page.cards}


def bound(sys_root: Path, *addresses: str) -> Path:
    for address in addresses:
        (sys_root / "bus/pci/drivers/nvidia" / address).mkdir(parents=True)
    return sys_root


def test_nvml_reads_three_cards_of_four_and_has_a_reason_for_the_fourth(tmp_path: Path) -> None:
    """nvitop#45, #139; nvgpu#6; gpustat#125: the other three vanished with it."""
    page = open_nvml(bound(tmp_path, *BUSES), lambda _: Box({BUSES[1]}))()
    assert used(page) == dict.fromkeys(BUSES, 2 << 30) | {BUSES[1]: None}
    (lost,) = (card for card in page.cards if card.device == BUSES[1])
    assert set(lost.reasons.values()) == {"failed: GpuIsLostError: GPU is lost"}


def test_nvml_names_a_lost_card_by_its_number_where_no_address_is_certain(tmp_path: Path) -> None:
    """A container shows the addresses of cards that are not its own."""
    others = bound(tmp_path, *BUSES, "0000:90:00.0")
    page = open_nvml(others, lambda _: Box({BUSES[1]}))()
    assert set(used(page)) == {BUSES[0], "gpu1", BUSES[2], BUSES[3]}


def test_nvml_reads_a_card_again_that_was_lost_and_came_back(tmp_path: Path) -> None:
    box = Box(set())
    look = open_nvml(tmp_path, lambda _: box)
    assert used(look())[BUSES[2]] == 2 << 30
    box.lost.add(BUSES[2])
    assert [used(look())[BUSES[2]] for _ in range(2)] == [None, None]
    box.lost.clear()
    box.resets += 1  # every handle from before is dead
    after = used(look())
    assert [after[bus] for bus in BUSES] == [None, None, 2 << 30, None]
    assert used(look()) == dict.fromkeys(BUSES, 2 << 30)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Not Supported", "absent: GpuIsLostError: Not Supported"),  # GB10: nvitop#208
        ("Insufficient Permissions", "denied: GpuIsLostError: Insufficient Permissions"),  # MIG
        ("Unknown Error", "failed: GpuIsLostError: Unknown Error"),
        ("", "failed: GpuIsLostError: no message"),
    ],
)
def test_the_words_of_nvml_tell_absent_from_denied_and_broken(
    tmp_path: Path, words: str, reason: str
) -> None:
    class Refusing(Box):
        def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
            raise GpuIsLostError(words)

        def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: N802
            return 31_200

    (card, *_) = open_nvml(tmp_path, lambda _: Refusing(set()))().cards
    assert card.values == {"power_mw": 31_200}
    assert card.reasons["vram_used_bytes"] == reason


def test_nvml_with_every_card_lost_still_lists_them(tmp_path: Path) -> None:
    page = open_nvml(bound(tmp_path, *BUSES), lambda _: Box(set(BUSES)))()
    assert used(page) == dict.fromkeys(BUSES)
    assert page.reason is None


def test_amdgpu_reads_a_card_again_whose_sensors_got_another_number(tmp_path: Path) -> None:
    sampler = GpuSampler(amd_tree(tmp_path), [AMDGPU])
    before = rows(sampler)
    card = tmp_path / "bus/pci/drivers/amdgpu" / AMD_ADDRESS
    shutil.move(card, tmp_path / "gone")
    lost = rows(sampler)
    assert set(lost) >= set(before)
    assert all((one.reason or "").startswith("absent") for one in lost.values())
    shutil.move(tmp_path / "gone", card)
    (card / "hwmon/hwmon3").rename(card / "hwmon/hwmon7")
    back = rows(sampler)
    assert {key: one.value for key, one in back.items()} == {
        key: one.value for key, one in before.items()
    }


def test_a_card_that_the_driver_binds_later_is_read(tmp_path: Path) -> None:
    sampler = GpuSampler(amd_tree(tmp_path), [AMDGPU])
    rows(sampler)
    driver = tmp_path / "bus/pci/drivers/amdgpu"
    shutil.copytree(driver / AMD_ADDRESS, driver / "0000:0d:00.0")
    assert set(rows_by_device(sampler)) == {AMD_ADDRESS, "0000:0d:00.0"}


def smi(text: str) -> ToolRun:
    return ToolRun(argv=("nvidia-smi",), returncode=0, stdout=text)


def test_nvidia_smi_asks_card_by_card_where_a_lost_one_silences_all() -> None:
    """nvitop#45 with 515.65: one line and no table, while `-i 0` shows a card."""
    whole = capture("nvidia_smi_lost_silences_all.txt")
    heading, *cards = capture("nvidia_smi_lost_among_rows.txt").splitlines(keepends=True)
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...]) -> ToolRun:
        asked.append(argv)
        if "-i" not in argv:
            return smi(whole)
        number = int(argv[argv.index("-i") + 1])
        if number == 1:
            return smi(whole)
        return smi(heading + cards[number] if number < 4 else "No devices were found\n")

    page = ask(NVIDIA_SMI, run).page
    assert used(page) == {
        "0000:0c:00.0": None,
        "0000:1d:00.0": 2 << 20,
        "0000:3f:00.0": 18307 << 20,
        "0000:40:00.0": 19534 << 20,
    }
    assert len(asked) == 1 + 4 + 1


def test_a_tool_that_never_says_no_such_card_is_asked_no_longer_than_a_box_holds_cards() -> None:
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...]) -> ToolRun:
        asked.append(argv)
        return smi(capture("nvidia_smi_lost_silences_all.txt"))

    page = ask(NVIDIA_SMI, run).page
    assert used(page) == {"0000:0c:00.0": None}
    assert len(asked) == 1 + MAX_CARDS


def test_where_numbers_shift_a_card_keeps_its_name_and_the_lost_one_has_a_reason(
    tmp_path: Path,
) -> None:
    """k8s-dra-driver-gpu#427, #563: the number of a card is its place among those that are left."""
    heading, first, _, *rest = capture("nvidia_smi_lost_among_rows.txt").splitlines(keepends=True)
    shifted = [row.replace(f", {n + 2}, GPU", f", {n}, GPU") for n, row in enumerate(rest)]
    pages = ["".join((heading, first, *rest)), "".join((heading, *shifted))]
    now_ns = 0

    def run(argv: tuple[str, ...]) -> ToolRun:
        return smi(pages[0 if now_ns == 0 or now_ns > TOOL_PERIOD_NS else 1])

    sampler = GpuSampler(tmp_path, [NVIDIA_SMI], run=run, clock_ns=lambda: now_ns)
    before = rows(sampler)
    now_ns = TOOL_PERIOD_NS
    after = rows(sampler)
    for bus in ("0000:3f:00.0", "0000:40:00.0"):
        assert after[bus, "vram_used_bytes"].value == before[bus, "vram_used_bytes"].value
    lost = {one.reason for (device, _), one in after.items() if device == "0000:1d:00.0"}
    assert lost == {GONE}
    now_ns = 2 * TOOL_PERIOD_NS
    assert rows(sampler)["0000:1d:00.0", "vram_used_bytes"].value == 2 << 20


@pytest.mark.parametrize(
    ("name", "sample", "lost", "kept"),
    [
        ("amd-smi", "amd_smi_metric_ge7.0_gpu_data_dpx.json", '"gpu": 0', "gpu1"),
        ("rocm-smi", "rocm_smi_mi250_secondary_dies.json", '"card0"', "0000:c6:00.0"),
        ("nvidia-smi", "nvidia_smi_error_words.csv", " 0, GPU", "0000:65:00.0"),
        ("npu-smi", "npu_smi_info_table.txt", "| 0     0 ", "0000:9f:00.0"),
        ("xpu-smi", "xpu_smi_max1550_first_row_na.txt", "    0,  N/A", "xpu1"),
    ],
)
def test_every_tool_that_no_longer_shows_a_card_keeps_the_others_and_says_so(
    tmp_path: Path, name: str, sample: str, lost: str, kept: str
) -> None:
    (tool,) = (one for one in TOOLS if one.name == name)
    whole = capture(sample)
    if sample.endswith(".json"):
        fewer = whole.replace(lost, f'"x{lost[1:]}')
    else:
        lines = whole.splitlines(keepends=True)
        fewer = "".join(line for line in lines if lost not in line)
    clock = SimpleNamespace(now=0)

    def run(argv: tuple[str, ...]) -> ToolRun:
        return smi("" if argv != tool.command else fewer if clock.now else whole)

    sampler = GpuSampler(tmp_path, [tool], run=run, clock_ns=lambda: clock.now)
    before = rows_by_device(sampler)
    clock.now = TOOL_PERIOD_NS
    after = rows_by_device(sampler)
    assert set(after) == set(before)
    gone = [device for device, found in after.items() if found["power_w"].reason == GONE]
    assert len(gone) == 1
    assert after[kept] == before[kept]


def test_a_card_that_only_the_list_of_amd_smi_knows_is_one_reason(tmp_path: Path) -> None:
    (tool,) = (one for one in TOOLS if one.name == "amd-smi")
    page = tool.page(
        capture("amd_smi_metric_several_documents.txt"), capture("amd_smi_list_dpx.json")
    )
    assert used(page) == {
        "0000:05:00.0": 283 << 20,
        "0000:05:00.1": 284 << 20,
        "0000:26:00.0": None,
        "0000:26:00.1": None,
    }
    assert set(page.cards[3].reasons) == set(tool.yields)
