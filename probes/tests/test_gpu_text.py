"""Every documented shape of the vendors' pages, from captures; values as their README states."""

from __future__ import annotations

import json

import pytest

from probes.gpu_amdsmi import parse_amd_monitor, parse_amd_smi
from probes.gpu_other import parse_mx_smi, parse_npu_info, parse_npu_usages, parse_nvidia_smi
from probes.gpu_reading import QUANTITIES, Page
from probes.gpu_rocm import parse_rocm_pids, parse_rocm_smi
from probes.tests.captures import capture

MIB = 1 << 20
BUSY = {
    "vram_used_bytes": 186646528000.0,
    "vram_total_bytes": 206141652992.0,
    "gpu_busy_percent": 97.0,
    "power_w": 412.0,
    "temp_junction_c": 61.0,
    "temp_mem_c": 48.0,
}


def rocm(name: str) -> Page:
    return parse_rocm_smi(capture(f"rocm_smi_{name}"))


def amd(name: str) -> Page:
    return parse_amd_smi(capture(f"amd_smi_{name}"))


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
    assert all(set(card.values) | set(card.reasons) == set(QUANTITIES) for card in page.cards)


def test_text_before_the_json_is_a_note_and_not_the_end() -> None:
    page = rocm("rocm5.7.1_use_mem_power_temp.stub.out")
    assert page.notes == ("get_version_str_0, Not supported on the given system",)


def test_csv_and_table_give_what_the_json_gives() -> None:
    wanted = {name: BUSY[name] for name in ("power_w", "gpu_busy_percent")}
    for name in ("rocm7.0_use_mem_power.stub.csv", "rocm7.0_use_power_temp.stub.table.txt"):
        page = rocm(name)
        assert len(page.cards) == 8
        for card in page.cards:
            assert {key: card.values[key] for key in wanted} == wanted
    assert rocm("rocm7.0_use_mem_power.stub.csv").cards[0].values["vram_used_bytes"] == 186646528000


def test_partitions_but_the_first_have_memory_alone_and_reasons_for_the_rest() -> None:
    page = rocm("rocm7.0_cpx_use_mem_power_temp.stub.json")
    assert len(page.cards) == 16
    with_power = [card.device for card in page.cards if "power_w" in card.values]
    assert with_power == ["card0", "card8"]
    assert page.cards[1].values["vram_used_bytes"] == 4294967296
    assert page.cards[1].reasons["power_w"].startswith("absent")


def test_all_metrics_at_once_keep_occupancy_and_activity_apart() -> None:
    card = rocm("rocm7.0_all.stub.json").cards[0]
    assert card.extra == {"vram_used_percent": 90.0}
    assert card.values["mem_busy_percent"] == 12.0
    assert "vram_used_bytes" in card.reasons


@pytest.mark.parametrize("text", ["", "\n\n", "WARNING: No JSON data to report\n"])
def test_empty_output_with_exit_code_0_is_absent_and_never_0(text: str) -> None:
    page = parse_rocm_smi(text)
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
    pages = [parse_rocm_smi(block.partition("\n")[2]) for block in blocks]
    first, second, third = pages[0].cards, pages[1].cards, pages[2].cards
    assert first[0].values["vram_used_bytes"] == 794341376
    assert first[0].values["temp_junction_c"] == 49.0
    # ROCm 2 wrote (c) and "mem".
    assert second[0].values["temp_mem_c"] == 79.0
    # Two names of the power in one host; a second die has none.
    assert third[0].reasons["power_w"] == "absent: the tool says 'N/A (Secondary die)'"
    assert third[1].values["power_w"] == 4.0
    assert all(not page.cards and page.reason for page in pages[3:])


def test_a_process_list_gives_memory_by_process_and_nothing_when_idle() -> None:
    found = parse_rocm_pids(capture("rocm_smi_rocm7.0_showpids.stub.json"))
    assert found == {"PID7579": {"gpus": 2.0, "vram_used_bytes": 150323855360.0}}
    assert (
        parse_rocm_pids(capture("rocm_smi_rocm7.0_showpids_idle_stdout_empty_rc0.stub.txt")) == {}
    )
    spaced = '{"system": {"PID1": "python, with comma, 8, 42, 0, 0"}}'
    assert parse_rocm_pids(spaced)["PID1"]["vram_used_bytes"] == 42


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
    assert (parse_amd_smi(text).reason or "").startswith("absent: no GPU document")
    page = parse_amd_smi(text + capture("amd_smi_metric_usage_le6.4_list.json"))
    assert page.cards[0].values["gpu_busy_percent"] == 42.0
    assert page.notes


def test_amd_smi_limits_are_read_under_both_of_their_names() -> None:
    old, new = amd("static_limit_le7.1.json").cards[0], amd("static_limit_ge7.2.json").cards[0]
    assert old.extra == {"max_power_w": 750.0, "socket_power_limit_w": 750.0}
    assert new.extra == {"max_power_w": 203.0, "socket_power_limit_w": 100.0}


def test_monitor_tables_of_three_releases_pair_values_with_their_headings() -> None:
    pages = [
        parse_amd_monitor(capture(f"amd_smi_monitor_{name}.txt"))
        for name in ("6.3_table", "6.4_table", "7.0_power")
    ]
    assert pages[0].cards[0].values["vram_total_bytes"] == 30679 * MIB
    assert pages[0].cards[0].values["temp_mem_c"] == 32.0
    assert pages[1].cards[0].values["gpu_busy_percent"] == 12.0
    assert pages[1].cards[0].values["vram_total_bytes"] == 64 << 30
    assert [card.values["power_w"] for card in pages[2].cards] == [148.0, 156.0]


def test_memory_without_a_unit_is_refused_because_it_could_be_wrong_by_a_million() -> None:
    entry = {"gpu": 0, "mem_usage": {"used_vram": 283, "total_vram": {"value": 5, "unit": "?"}}}
    card = parse_amd_smi(json.dumps([entry])).cards[0]
    assert "vram_used_bytes" not in card.values
    assert "vram_total_bytes" not in card.values


def test_nvidia_columns_are_found_by_heading_and_a_bracketed_word_is_a_reason() -> None:
    first, second = parse_nvidia_smi(capture("otherGPU_nvidia-smi_query.csv")).cards
    assert first.values == {
        "vram_used_bytes": 61234.0 * MIB,
        "gpu_busy_percent": 87.0,
        "power_w": 412.35,
    }
    assert second.values == {"vram_used_bytes": 61230.0 * MIB}
    assert second.reasons["power_w"] == "absent: the tool says 'N/A'"
    assert parse_nvidia_smi("NVIDIA-SMI has failed\n").reason is not None


def test_ascend_and_metax_pages_give_their_memory() -> None:
    first, second = parse_npu_info(capture("otherGPU_npu-smi_info_table.txt")).cards
    assert (first.device, second.device) == ("npu 0000:9D:00.0", "npu 0000:9F:00.0")
    assert first.values["vram_used_bytes"] == 3416 * MIB
    assert first.values["power_w"] == 178.5
    assert second.reasons["power_w"].startswith("absent: the tool says '-'")
    usages = parse_npu_usages(capture("otherGPU_npu-smi_usages_keys.txt")).cards[0]
    assert usages.values["vram_total_bytes"] == 65536 * MIB
    assert usages.extra == {"vram_used_percent": 5.0}
    mx = parse_mx_smi(capture("otherGPU_mx-smi_excerpt.txt")).cards[0]
    assert mx.values["vram_used_bytes"] == 846264 * 1024
    assert parse_mx_smi("vis_vram used \uff1a 7 KB\n").cards[0].values["vram_used_bytes"] == 7168
    assert parse_npu_info("").reason == "absent: empty output"
