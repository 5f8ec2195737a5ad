"""Every documented shape of the vendors' pages, from captures; values as their README states."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from probes.gpu.amd_smi import AMD_SMI
from probes.gpu.card import MIB, Page
from probes.gpu.mx_smi import MX_SMI
from probes.gpu.npu_smi import NPU_SMI
from probes.gpu.nvidia_smi import NVIDIA_SMI
from probes.gpu.rocm_smi import ROCM_SMI
from probes.gpu.sources import SOURCES, TOOLS
from probes.tests.support.captures import SAMPLES, capture, captures_of

if TYPE_CHECKING:
    from probes.gpu.source import Tool

# The quantities a judge or a chart asks for; a source may add its own under other names.
COMMON = ("vram_used_bytes", "vram_total_bytes", "gpu_busy_percent")
BUSY = {
    "vram_used_bytes": 186646528000.0,
    "vram_total_bytes": 206141652992.0,
    "gpu_busy_percent": 97.0,
    "power_w": 412.0,
    "temp_junction_c": 61.0,
    "temp_mem_c": 48.0,
}


def rocm(name: str) -> Page:
    return ROCM_SMI.page(capture(f"rocm_smi_{name}"))


def amd(name: str) -> Page:
    return AMD_SMI.page(capture(f"amd_smi_{name}"))


@pytest.mark.parametrize(
    "name",
    [
        "rocm5.7.1_use_mem_power_temp.stub.out",
        "rocm6.2.4_use_mem_power_temp.stub.json",
        "rocm7.0_spx_use_mem_power_temp.stub.json",
    ],
)
def test_eight_cards_of_three_major_releases_read_alike(name: str) -> None:
    page = rocm(name)
    assert page.reason is None
    assert [card.device for card in page.cards] == [f"card{number}" for number in range(8)]
    assert all(card.values == BUSY for card in page.cards)
    assert all(set(card.values) | set(card.reasons) == set(ROCM_SMI.yields) for card in page.cards)


def test_text_before_the_json_is_a_note_and_not_the_end() -> None:
    page = rocm("rocm5.7.1_use_mem_power_temp.stub.out")
    assert page.notes == ("get_version_str_0, Not supported on the given system",)


def test_partitions_but_the_first_have_memory_alone_and_reasons_for_the_rest() -> None:
    page = rocm("rocm7.0_cpx_use_mem_power_temp.stub.json")
    assert len(page.cards) == 16
    with_power = [card.device for card in page.cards if "power_w" in card.values]
    assert with_power == ["card0", "card8"]
    assert page.cards[1].values["vram_used_bytes"] == 4294967296
    assert page.cards[1].reasons["power_w"].startswith("absent")


def test_all_metrics_at_once_keep_occupancy_and_activity_apart() -> None:
    card = rocm("rocm7.0_all.stub.json").cards[0]
    assert card.values["mem_busy_percent"] == 12.0
    assert "vram_used_bytes" in card.reasons


@pytest.mark.parametrize("text", ["", "\n\n", "WARNING: No JSON data to report\n"])
def test_empty_output_with_exit_code_0_is_absent_and_never_0(text: str) -> None:
    page = ROCM_SMI.page(text)
    assert (page.cards, (page.reason or "")[:6]) == ((), "absent")


@pytest.mark.parametrize(
    "name",
    [
        "real_rocm5.2.3_no_gpu_stdout_empty_rc0.txt",
        "rocm7.0_bare_json_rc1_stdout.stub.txt",
        "rocm7.0_showpids_idle_stdout_empty_rc0.stub.txt",
    ],
)
def test_words_instead_of_cards_are_a_reason_with_those_words(name: str) -> None:
    page = rocm(name)
    assert page.cards == ()
    assert (page.reason or "").startswith("absent: no card in this output")
    assert page.notes


def test_real_lines_of_public_reports_read_as_what_they_are() -> None:
    blocks = capture("rocm_smi_issue_real_samples.txt").split("# [")[1:]
    pages = [ROCM_SMI.page(block.partition("\n")[2]) for block in blocks]
    first, second = pages[0].cards, pages[1].cards
    assert first[0].values["vram_used_bytes"] == 794341376
    assert first[0].values["temp_junction_c"] == 49.0
    # ROCm 2 wrote (c) and "mem".
    assert second[0].values["temp_mem_c"] == 79.0
    # Tables, and complaints instead of JSON.
    assert all(not page.cards and page.reason for page in pages[2:])


def test_amd_smi_lists_before_7_0_and_gpu_data_after_it() -> None:
    old = amd("metric_usage_le6.4_list.json").cards
    assert [(card.device, card.values) for card in old] == [
        ("gpu0", {"gpu_busy_percent": 42.0, "mem_busy_percent": 1.0})
    ]
    first, second = amd("metric_ge7.0_gpu_data_dpx.json").cards
    assert first.values == {
        "vram_used_bytes": 283.0 * MIB,
        "vram_total_bytes": 196592.0 * MIB,
        "gpu_busy_percent": 0.0,
        "mem_busy_percent": 0.0,
        "power_w": 140.0,
        "temp_junction_c": 37.0,
        "temp_mem_c": 31.0,
    }
    # A whole block that is the word N/A.
    assert second.values == {"vram_used_bytes": 141.0 * MIB, "vram_total_bytes": 98296.0 * MIB}
    assert second.reasons["gpu_busy_percent"] == "absent: the tool says 'N/A'"


def test_amd_smi_watch_is_a_banner_and_then_perhaps_a_document() -> None:
    page = amd("metric_watch_7.1.1_7.2.0_stdout.txt")
    assert page.cards == ()
    assert "CTRL" in (page.reason or "")
    page = amd("metric_watch_7.2.1_stdout.txt")
    assert [card.device for card in page.cards] == ["gpu0"]
    assert page.cards[0].values == {}
    assert page.notes == ("'CTRL' + 'C' to stop watching output:",)


@pytest.mark.parametrize("release", ["7.0", "7.1.1"])
def test_amd_smi_group_hints_on_stdout_are_a_reason_alone_and_a_note_before_json(
    release: str,
) -> None:
    text = capture(f"amd_smi_group_warning_{release}_stdout.txt")
    assert (AMD_SMI.page(text).reason or "").startswith("absent: no GPU document")
    page = AMD_SMI.page(text + capture("amd_smi_metric_usage_le6.4_list.json"))
    assert page.cards[0].values["gpu_busy_percent"] == 42.0
    assert page.notes


def test_memory_without_a_unit_is_refused_because_it_could_be_wrong_by_a_million() -> None:
    units: list[object] = ["?", None, [], {}]
    for unit in units:
        usage = {"used_vram": 283, "total_vram": {"value": 5, "unit": unit}}
        card = AMD_SMI.page(json.dumps([{"gpu": 0, "mem_usage": usage}])).cards[0]
        assert "vram_used_bytes" not in card.values
        assert "vram_total_bytes" not in card.values


def test_nvidia_columns_are_found_by_heading_and_a_bracketed_word_is_a_reason() -> None:
    first, second = NVIDIA_SMI.page(capture("nvidia_smi_query.csv")).cards
    assert first.values == {
        "vram_used_bytes": 61234.0 * MIB,
        "gpu_busy_percent": 87.0,
        "power_w": 412.35,
    }
    assert second.values == {"vram_used_bytes": 61230.0 * MIB}
    assert second.reasons["power_w"] == "absent: the tool says 'N/A'"
    assert NVIDIA_SMI.page("NVIDIA-SMI has failed\n").reason is not None


def test_ascend_and_metax_pages_give_their_memory() -> None:
    first, second = NPU_SMI.page(capture("npu_smi_info_table.txt")).cards
    assert (first.device, second.device) == ("0000:9d:00.0", "0000:9f:00.0")
    assert first.values["vram_used_bytes"] == 3416 * MIB
    assert first.values["power_w"] == 178.5
    assert second.reasons["power_w"].startswith("absent: the tool says '-'")
    mx = MX_SMI.page(capture("mx_smi_excerpt.txt")).cards[0]
    assert mx.values["vram_used_bytes"] == 846264 * 1024
    assert MX_SMI.page("vis_vram used \uff1a 7 KB\n").cards[0].values["vram_used_bytes"] == 7168
    assert NPU_SMI.page("").reason == "absent: empty output"


def pages_of(tool: Tool) -> list[Page]:
    """What a tool makes of each of its captures."""
    files = sorted(SAMPLES.glob(f"capture_{captures_of(tool.name)}*"))
    return [tool.page(path.read_text(encoding="utf-8")) for path in files]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_a_capture_that_gives_what_it_declares(tool: Tool) -> None:
    cards = [card for page in pages_of(tool) for card in page.cards]
    assert cards, f"no capture_{captures_of(tool.name)}* below samples/ shows a card"
    given = {quantity for card in cards for quantity in card.values}
    assert given <= set(tool.yields)
    assert "vram_used_bytes" in given
    assert all(set(card.values) | set(card.reasons) == set(tool.yields) for card in cards)


def test_sources_have_names_of_their_own_and_declare_the_common_quantities() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert set(COMMON) <= set(source.yields), source.name
    assert all(tool.command[0] == tool.name for tool in TOOLS)
