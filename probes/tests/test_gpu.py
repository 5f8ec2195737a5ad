"""The GPU series from a made-up sysfs (no AMD card was at hand), NVML from a fake of its module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from probes.gpu import GpuProbe, find_amd_cards
from probes.gpu_nvml import open_nvml
from probes.gpu_snapshot import memory_in_use, take_snapshots
from probes.tests.kernel_trees import AMD_ADDRESS, amd_tree
from probes.tool import ToolRun, run_tool

if TYPE_CHECKING:
    from pathlib import Path

    from probes.readings import Reading


def rows(probe: GpuProbe) -> dict[tuple[str, str], Reading]:
    return {(row.device, row.counter): row for one in probe.sample() for row in one.readings}


def no_nvml() -> Any:
    def missing(name: str) -> Any:
        raise ImportError(name)

    return open_nvml(missing)


def test_every_file_of_a_card_is_a_row_with_its_unit_and_a_missing_one_a_reason(
    tmp_path: Path,
) -> None:
    found = rows(GpuProbe(amd_tree(tmp_path), no_nvml()))
    assert found[AMD_ADDRESS, "vram_used_bytes"].value == 296747008
    assert found[AMD_ADDRESS, "power_input_uw"].value == 148_000_000
    assert found[AMD_ADDRESS, "temp_junction_millicelsius"].value == 37_000
    assert found[AMD_ADDRESS, "gpu_busy_percent"].value == 0
    assert (found[AMD_ADDRESS, "mem_busy_percent"].reason or "").startswith("absent")
    assert found["nvml", "cards"].reason == "absent: nvidia-ml-py is not installed"


def test_a_host_without_a_card_says_so_once(tmp_path: Path) -> None:
    probe = GpuProbe(tmp_path, no_nvml())
    assert (rows(probe)["amdgpu", "cards"].reason or "").startswith("absent")
    assert probe.sample() == []


def test_a_file_with_words_in_it_is_a_reason_and_not_0(tmp_path: Path) -> None:
    root = amd_tree(tmp_path)
    card = root / "bus" / "pci" / "drivers" / "amdgpu" / AMD_ADDRESS
    (card / "mem_info_vram_used").write_text("busy\n")
    found = rows(GpuProbe(root, no_nvml()))[AMD_ADDRESS, "vram_used_bytes"]
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
        return SimpleNamespace(used=7, total=80)


def test_nvml_gives_what_it_has_and_a_reason_for_the_rest() -> None:
    nvml = open_nvml(lambda _: FakeNvml())
    found = {row.counter: row for row in nvml.readings()}
    assert found["vram_used_bytes"].device == "00000000:3b:00.0"
    assert found["vram_used_bytes"].value == 7
    assert (found["power_mw"].reason or "").startswith("failed: AttributeError")


def test_a_binding_whose_driver_is_missing_fails_in_any_way_and_is_a_reason() -> None:
    def broken(_name: str) -> Any:
        raise KeyError("libnvidia-ml.so")

    assert (open_nvml(broken).reason or "").startswith("failed: KeyError")


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
    assert [one.source for one in found][:2] == ["rocm-smi", "amd-smi"]
    assert found[0].row()["parsed"]["reason"].startswith("absent: empty output")
    assert found[1].row()["raw"]["stdout"].startswith('{"gpu_data"')
    (card,) = memory_in_use(found, tmp_path)
    assert card["vram_used_bytes"] == 2 << 20
    assert card["vram_total_bytes"] is None
    (card,) = memory_in_use(found, amd_tree(tmp_path))
    assert (card["source"], card["vram_used_bytes"]) == ("amdgpu sysfs", 296747008)
    assert len(find_amd_cards(tmp_path)) == 1
