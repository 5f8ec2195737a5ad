"""The GPU series from a made-up sysfs (no AMD card was at hand), NVML from a fake of its module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from probes.gpu.amdgpu import AMDGPU
from probes.gpu.nvml import open_nvml
from probes.gpu.probe import TOOL_PERIOD_NS, GpuSampler
from probes.gpu.snapshot import memory_in_use, take_snapshots
from probes.gpu.source import page_samples
from probes.gpu.sources import TOOLS
from probes.tests.support.captures import capture
from probes.tests.support.kernel_trees import AMD_ADDRESS, amd_tree
from probes.tests.support.samplers import rows
from probes.tool import ToolRun, run_tool

if TYPE_CHECKING:
    from pathlib import Path


def test_every_file_of_a_card_is_a_row_with_its_unit_and_a_missing_one_a_reason(
    tmp_path: Path,
) -> None:
    found = rows(GpuSampler(amd_tree(tmp_path), [AMDGPU]))
    assert found[AMD_ADDRESS, "vram_used_bytes"].value == 296747008
    assert found[AMD_ADDRESS, "power_input_uw"].value == 148_000_000
    assert found[AMD_ADDRESS, "temp_junction_millicelsius"].value == 37_000
    assert found[AMD_ADDRESS, "gpu_busy_percent"].value == 0
    assert (found[AMD_ADDRESS, "mem_busy_percent"].reason or "").startswith("absent")


def no_tool(argv: tuple[str, ...]) -> ToolRun:
    return ToolRun(argv=argv, reason="absent: no such tool")


def test_a_host_without_a_card_says_so_once_for_every_source(tmp_path: Path) -> None:
    asked: list[str] = []

    def run(argv: tuple[str, ...]) -> ToolRun:
        asked.append(argv[0])
        return no_tool(argv)

    now_ns = 0
    sampler = GpuSampler(tmp_path, [AMDGPU, *TOOLS], run=run, clock_ns=lambda: now_ns)
    found = rows(sampler)
    assert {device for device, _ in found} == {"amdgpu", *(tool.name for tool in TOOLS)}
    assert all((row.reason or "").startswith("absent") for row in found.values())
    assert sampler.sample() == []
    now_ns += 2 * TOOL_PERIOD_NS
    assert sampler.sample() == []
    assert asked == [tool.name for tool in TOOLS]


def test_where_no_library_sees_a_card_the_tools_that_do_are_asked_once_a_minute(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def run(argv: tuple[str, ...]) -> ToolRun:
        asked.append(argv[0])
        text = capture("npu_smi_info_table.txt") if len(asked) <= len(TOOLS) + 1 else "busy\n"
        return ToolRun(argv=argv, stdout=text) if argv[0] == "npu-smi" else no_tool(argv)

    now_ns = 0
    sampler = GpuSampler(tmp_path, [AMDGPU, *TOOLS], run=run, clock_ns=lambda: now_ns)
    found = rows(sampler)
    assert found["0000:9d:00.0", "vram_used_bytes"].value == 3416 << 20
    assert (found["0000:9f:00.0", "power_w"].reason or "").startswith("absent")
    assert asked == [tool.name for tool in TOOLS]
    now_ns = TOOL_PERIOD_NS - 1
    assert sampler.sample() == []
    now_ns = TOOL_PERIOD_NS
    assert ("0000:9d:00.0", "power_w") in rows(sampler)
    assert asked[len(TOOLS) :] == ["npu-smi"]
    # It has shown a card, so it is asked again after a page without one.
    for minute in (2, 3):
        now_ns = minute * TOOL_PERIOD_NS
        assert (rows(sampler)["npu-smi", "cards"].reason or "").startswith("absent: no chip")
    assert asked[len(TOOLS) :] == ["npu-smi"] * 3


def test_no_command_of_a_vendor_is_run_whose_library_sees_a_card(tmp_path: Path) -> None:
    asked: list[str] = []

    def run(argv: tuple[str, ...]) -> ToolRun:
        asked.append(argv[0])
        return no_tool(argv)

    assert rows(GpuSampler(amd_tree(tmp_path), [AMDGPU, *TOOLS], run=run))
    assert asked == [tool.name for tool in TOOLS if tool.vendor != "amd"]


def test_a_file_with_words_in_it_is_a_reason_and_not_0(tmp_path: Path) -> None:
    root = amd_tree(tmp_path)
    card = root / "bus" / "pci" / "drivers" / "amdgpu" / AMD_ADDRESS
    (card / "mem_info_vram_used").write_text("busy\n")
    found = rows(GpuSampler(root, [AMDGPU]))[AMD_ADDRESS, "vram_used_bytes"]
    assert (found.value, found.reason) == (None, "failed: 'busy' is no counter")


class FakeNvml:
    """Two calls answered, the others refused in the library's own kind of error."""

    def nvmlInit(self) -> None: ...  # noqa: N802 - the library's names

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetPciInfo(self, _handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(busId=b"00000000:3B:00.0")

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=7 << 30, total=80 << 30)


def test_nvml_gives_what_it_has_and_a_reason_for_the_rest(tmp_path: Path) -> None:
    (card,) = open_nvml(tmp_path, lambda _: FakeNvml())().cards
    assert card.device == "0000:3b:00.0"
    assert card.values == {"vram_used_bytes": 7 << 30, "vram_total_bytes": 80 << 30}
    assert card.reasons["power_mw"].startswith("failed: AttributeError")


def test_a_missing_binding_and_one_whose_driver_is_missing_are_reasons(tmp_path: Path) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    def broken(_name: str) -> Any:
        raise KeyError("libnvidia-ml.so")

    (row,) = page_samples("nvml", open_nvml(tmp_path, missing)())
    assert (row.device, row.reason) == ("nvml", "absent: nvidia-ml-py is not installed")
    assert (open_nvml(tmp_path, broken)().reason or "").startswith("failed: KeyError")


def test_a_tool_that_hangs_is_killed_with_its_children_and_is_a_reason() -> None:
    # The grandchild holds the pipe open: without killing the session, reading would wait for it.
    found = run_tool(["sh", "-c", "echo half; sleep 60 & sleep 60"], timeout_s=0.5)
    assert found.reason == "failed: no end within 0.5 s"
    assert found.returncode is None
    assert found.stdout in {"half\n", ""}
    assert (run_tool(["no-such-tool-here"]).reason or "").startswith("absent")


def test_snapshots_keep_the_raw_text_of_every_tool_and_count_each_card_once(
    tmp_path: Path,
) -> None:
    def said(argv: tuple[str, ...]) -> ToolRun:
        if argv[0] == "amd-smi":
            text = (
                '{"gpu_data": [{"gpu": 0, "mem_usage": {"used_vram": {"value": 2, "unit": "MB"}}}]}'
            )
            return ToolRun(argv=argv, returncode=0, stdout=text)
        if argv[0] == "rocm-smi":
            return ToolRun(argv=argv, returncode=0, stdout="")
        return ToolRun(argv=argv, reason="absent: no such tool")

    found = take_snapshots(said)
    assert [one.source for one in found][:2] == ["amd-smi", "rocm-smi"]
    assert (found[1].parsed.reason or "").startswith("absent: empty output")
    assert found[0].raw.stdout.startswith('{"gpu_data"')
    assert [run.argv for run in found[0].further] == [("amd-smi", "list", "--json")]
    (card,) = memory_in_use(found, tmp_path)
    assert card["vram_used_bytes"] == 2 << 20
    assert card["vram_total_bytes"] is None
    (card,) = memory_in_use(found, amd_tree(tmp_path))
    assert (card["source"], card["vram_used_bytes"]) == ("amdgpu", 296747008)


def amd_card(root: Path, name: str, **files: str) -> None:
    card = root / "bus" / "pci" / "drivers" / "amdgpu" / name
    card.mkdir(parents=True)
    for file, text in files.items():
        (card / file).write_text(text + "\n")


def test_memory_in_use_of_an_apu_is_what_it_maps_of_the_hosts(tmp_path: Path) -> None:
    """MI300A states 0 bytes of its own (ollama#13463): 0 of 0 in use is not idle."""
    amd_card(
        tmp_path,
        "0000:01:00.0",
        mem_info_vram_used="0",
        mem_info_vram_total="0",
        mem_info_gtt_used=str(90 << 30),
        mem_info_gtt_total=str(128 << 30),
    )
    (card,) = memory_in_use([], tmp_path)
    assert card == {
        "device": "0000:01:00.0",
        "source": "amdgpu gtt",
        "vram_used_bytes": 90 << 30,
        "vram_total_bytes": 128 << 30,
    }


def test_unified_memory_that_nobody_states_is_unknown(tmp_path: Path) -> None:
    amd_card(tmp_path, "0000:01:00.0", mem_info_vram_used="0", mem_info_vram_total="0")
    (card,) = memory_in_use([], tmp_path)
    assert (card["vram_used_bytes"], card["vram_total_bytes"]) == (None, None)


def test_an_integrated_card_beside_others_holds_no_model(tmp_path: Path) -> None:
    """LocalAI#7761: a Raphael of 64 MiB beside a card of 16 GiB."""
    amd_card(
        amd_tree(tmp_path),
        "0000:1a:00.0",
        mem_info_vram_used="26079232",
        mem_info_vram_total="67108864",
    )
    assert [one["device"] for one in memory_in_use([], tmp_path)] == [AMD_ADDRESS]
