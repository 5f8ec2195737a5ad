"""Public reports about the vendors' tools: the shape of each, rewritten, and what is read of it.

Names, addresses and numbers are made up; the report says where the shape was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from probes.gpu.ask import ask
from probes.gpu.card import MIB
from probes.gpu.seen import seen
from probes.gpu.sources import TOOLS
from probes.tests.support.captures import capture
from probes.tool import ToolRun

if TYPE_CHECKING:
    from probes.gpu.source import Tool

USED, TOTAL, BUSY, POWER = "vram_used_bytes", "vram_total_bytes", "gpu_busy_percent", "power_w"
NO = "absent: the tool says 'N/A'"
NA = "absent: the tool says 'NA'"
OWN = "absent: {} bytes of its own, it uses the host's memory (unified)"

COMPLAINT = "failed: the tool says 'power: Data (usually from reading a file) was not of the typ'"


@dataclass(frozen=True, kw_only=True)
class Report:
    """One report: what a card of its page must come to, values and reasons alike."""

    source: str
    sample: str
    cards: int
    card: str
    said: dict[str, float | str]
    names: str | None = None


REPORTS = (
    Report(
        source="nvitop#45, nvidia-docker#1553, OWOD#81",
        sample="nvidia_smi_lost_silences_all.txt",
        cards=1,
        card="0000:0c:00.0",
        said={USED: "failed: the tool says 'Unknown Error'"},
    ),
    Report(
        source="koordinator#2706, dcgm-exporter#604",
        sample="nvidia_smi_lost_among_rows.txt",
        cards=4,
        card="0000:40:00.0",
        said={USED: 19534 * MIB, TOTAL: 24576 * MIB, BUSY: 20, POWER: 144},
    ),
    Report(
        source="sonar#460, nvitop#208, unsloth#10283, ArcticTraining#345",
        sample="nvidia_smi_gb10_unified.csv",
        cards=1,
        card="000f:01:00.0",
        said={USED: NO, TOTAL: NO, BUSY: 0, POWER: 11.17},
    ),
    Report(
        source="StableSwarmUI#388, sacred#864, nvidia-container-toolkit#842",
        sample="nvidia_smi_mig_no_permission.csv",
        cards=1,
        card="0000:c1:00.0",
        said={USED: "denied: the tool says 'Insufficient Permissions'", BUSY: NO, POWER: 71.4},
    ),
    Report(
        source="i3pystatus#776, Megaminer#235, energy-usage#1",
        sample="nvidia_smi_not_supported.csv",
        cards=1,
        card="0000:01:00.0",
        said={USED: "absent: the tool says 'Not Supported'", TOTAL: 2004 * MIB},
    ),
    Report(
        source="pynvml#51, MindMiner#627",
        sample="nvidia_smi_error_words.csv",
        cards=2,
        card="0000:17:00.0",
        said={
            USED: "failed: the tool says 'GPU requires reset'",
            POWER: "failed: the tool says 'Unknown Error'",
            "temp_junction_c": "failed: the tool says 'ERR!'",
        },
    ),
    Report(
        source="llama-server-launcher#19: rows skipped, the rest renumbered",
        sample="nvidia_smi_torn_row.csv",
        cards=3,
        card="0000:65:00.0",
        said={USED: "failed: 6 cells in this row, 9 in the heading"},
    ),
    Report(
        source="rocm-systems#667: a document a card",
        sample="amd_smi_metric_several_documents.txt",
        cards=2,
        card="gpu0",
        said={USED: 283 * MIB, TOTAL: 196592 * MIB, POWER: 140},
    ),
    Report(
        source="amdsmi#132, rocm-systems#5805: the function of an address is the partition",
        sample="amd_smi_metric_ge7.0_gpu_data_dpx.json",
        names="amd_smi_list_dpx.json",
        cards=4,
        card="0000:05:00.1",
        said={USED: 141 * MIB, BUSY: NO, POWER: NO},
    ),
    Report(
        source="ajean#39",
        sample="amd_smi_metric_radeon_gpu_data.json",
        cards=1,
        card="gpu0",
        said={USED: 14569 * MIB, TOTAL: 16368 * MIB, BUSY: 2},
    ),
    Report(
        source="rocm-systems#8475, gpustack#4848, homelab-monitor#237",
        sample="amd_smi_metric_7.2_carve_out.json",
        cards=1,
        card="gpu0",
        said={USED: OWN.format(512 << 20), TOTAL: OWN.format(512 << 20), BUSY: 3},
    ),
    Report(
        source="ROCm/pytorch#1457: MI200 has an average alone; a unit in the text",
        sample="amd_smi_metric_6.0_texts_and_widths.json",
        cards=2,
        card="gpu0",
        said={USED: 10 * MIB, BUSY: 85, POWER: 94, "temp_junction_c": 52.5},
    ),
    Report(
        source="ROCm/amdsmi: the largest number of a width marks what is not there",
        sample="amd_smi_metric_6.0_texts_and_widths.json",
        cards=2,
        card="gpu1",
        said={BUSY: "failed: 65535 is more than any card has", POWER: 717},
    ),
    Report(
        source="InferenceX#890, #828",
        sample="amd_smi_metric_csv.csv",
        cards=2,
        card="gpu1",
        said={USED: NO, TOTAL: 294896 * MIB, BUSY: 0, POWER: NO},
    ),
    Report(
        source="LocalAI#7761, marimo#9237: an integrated card beside the other",
        sample="rocm_smi_csv_with_igpu.csv",
        cards=2,
        card="card1",
        said={USED: OWN.format(64 << 20)},
    ),
    Report(
        source="rocm_smi_lib#160, #149",
        sample="rocm_smi_mi250_secondary_dies.json",
        cards=4,
        card="0000:c6:00.0",
        said={USED: 10960896, POWER: "absent: the tool says 'N/A (Secondary die)'", BUSY: 100},
    ),
    Report(
        source="rocm_smi_lib#85, TheRock#3298",
        sample="rocm_smi_lost_card_complains.txt",
        cards=3,
        card="card1",
        said={USED: COMPLAINT},
    ),
    Report(
        source="legacy-rocm-build#4750, #4759, k8s-device-plugin#157",
        sample="rocm_smi_cpx_one_address.json",
        cards=9,
        card="0000:05:00.0/p7",
        said={USED: 297771008, BUSY: NO, POWER: "absent: not in this output"},
    ),
    Report(
        source="Ascend samples for 310P: no power, host memory in place of HBM, processes below",
        sample="npu_smi_310p_power_na.txt",
        cards=1,
        card="0000:01:00.0",
        said={USED: 1894 * MIB, TOTAL: 44215 * MIB, POWER: NA},
    ),
    Report(
        source="AYOT's page of a 310B: no PCI address",
        sample="npu_smi_310b_no_address.txt",
        cards=1,
        card="npu0.0",
        said={USED: 7356 * MIB, POWER: 9},
    ),
    Report(
        source="vllm-ascend#12980, #2526",
        sample="npu_smi_910_wide_full.txt",
        cards=3,
        card="0000:9d:00.0",
        said={USED: 57784 * MIB, TOTAL: 65536 * MIB, POWER: 162.6},
    ),
    Report(
        source="vllm-ascend#12980, with a chip that says nothing",
        sample="npu_smi_910_wide_full.txt",
        cards=3,
        card="0000:99:00.0",
        said={USED: NA, TOTAL: NA, BUSY: NA, POWER: NA},
    ),
    Report(
        source="HAMi-WebUI#47: no Phy-ID",
        sample="npu_smi_910b4_chip_alone.txt",
        cards=1,
        card="0000:c1:00.0",
        said={USED: 3197 * MIB, POWER: 91.3},
    ),
    Report(
        source="xpumanager#98, #76: N/A in the first row, or for ever",
        sample="xpu_smi_max1550_first_row_na.txt",
        names="xpu_smi_discovery.json",
        cards=2,
        card="0000:2a:00.0",
        said={USED: round(2188.25 * MIB), BUSY: NO, POWER: 286.48},
    ),
    Report(
        source="xpumanager#69",
        sample="xpu_smi_flex170_empty_cells.txt",
        cards=1,
        card="xpu0",
        said={USED: "absent: empty", BUSY: "absent: empty", POWER: 43.72},
    ),
    Report(
        source="xpumanager#145, #147: release 2.0",
        sample="xpu_smi_2.0_has_no_dump.txt",
        cards=0,
        card="",
        said={},
    ),
)


def tool_of(sample: str) -> Tool:
    (tool,) = (one for one in TOOLS if sample.startswith(one.name.replace("-", "_")))
    return tool


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: f"{one.sample} {one.card}")
def test_the_shape_of_a_public_report_is_read_or_a_reason(report: Report) -> None:
    names = capture(report.names) if report.names else ""
    page = tool_of(report.sample).page(capture(report.sample), names)
    assert len(page.cards) == report.cards
    assert bool(page.reason) is (not page.cards)
    found = {card.device: {**card.values, **card.reasons} for card in page.cards}
    assert {key: found[report.card][key] for key in report.said} == report.said


def test_what_amd_smi_lacks_of_a_card_rocm_smi_fills_and_no_card_counts_twice() -> None:
    """Both tools are there: ROCm 6.4 lost what the other still had (legacy-rocm-build#4759)."""
    amd = (
        '[{"gpu": 0, "usage": "N/A", "mem_usage": {"used_vram": {"value": 283, "unit": "MB"},'
        ' "total_vram": {"value": 196592, "unit": "MB"}}}]'
    )
    rocm = (
        '{"card0": {"PCI Bus": "0000:05:00.0", "GPU use (%)": "97", "VRAM Total Memory (B)": "1",'
        ' "Average Graphics Package Power (W)": "412.0"},'
        ' "card1": {"PCI Bus": "0000:26:00.0", "GPU use (%)": "5"}}'
    )
    said = {
        "amd-smi metric": amd,
        "amd-smi list": '[{"gpu": 0, "bdf": "0000:05:00.0"}]',
        "rocm-smi --showuse": rocm,
    }

    def run(argv: tuple[str, ...]) -> ToolRun:
        return ToolRun(argv=argv, stdout=said.get(" ".join(argv[:2]), ""))

    first, second = seen([(tool, ask(tool, run).page) for tool in TOOLS])
    assert (first.source, first.card.device) == ("amd-smi+rocm-smi", "0000:05:00.0")
    assert first.card.values == {USED: 283 * MIB, TOTAL: 196592 * MIB, BUSY: 97, POWER: 412}
    assert (second.source, second.card.device) == ("rocm-smi", "0000:26:00.0")


def test_cards_that_a_tool_only_numbers_are_never_joined_with_another_tools() -> None:
    amd = tool_of("amd_smi_").page(capture("amd_smi_metric_several_documents.txt"))
    rocm = tool_of("rocm_smi_").page(capture("rocm_smi_mi250_secondary_dies.json"))
    found = seen([(tool_of("amd_smi_"), amd), (tool_of("rocm_smi_"), rocm)])
    assert [(one.source, one.card.device) for one in found] == [
        ("amd-smi", "gpu0"),
        ("amd-smi", "gpu1"),
    ]


def test_partitions_of_a_card_that_the_driver_shows_whole_are_no_further_cards() -> None:
    whole = tool_of("rocm_smi_").page(capture("rocm_smi_lost_card_complains.txt"))
    partitions = tool_of("rocm_smi_").page(
        '{"card0": {"PCI Bus": "0000:c1:00.0"}, "card1": {"PCI Bus": "0000:c1:00.1"}}'
    )
    kept = [card for card in whole.cards if card.device != "card1"]
    pages = [
        (tool_of("amd_smi_"), replace(whole, cards=tuple(kept))),
        (tool_of("rocm_smi_"), partitions),
    ]
    assert [one.card.device for one in seen(pages)] == ["0000:c1:00.0", "0000:c9:00.0"]


def test_cards_of_two_vendors_are_all_seen() -> None:
    pages = [
        (tool_of(sample), tool_of(sample).page(capture(sample)))
        for sample in ("rocm_smi_mi250_secondary_dies.json", "nvidia_smi_gb10_unified.csv")
    ]
    assert len(seen(pages)) == 5
