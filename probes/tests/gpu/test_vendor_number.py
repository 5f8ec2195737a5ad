"""What vendors write in place of a number: never 0, never idle, always a reason."""

from __future__ import annotations

import pytest

from probes.gpu.card import CARVE_OUT_BYTES, MIB, TOTAL, USED, CardBuilder
from probes.gpu.vendor_number import number, reading, why_not


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("N/A", "absent: the tool says 'N/A'"),
        ("[N/A]", "absent: the tool says 'N/A'"),
        ("NA", "absent: the tool says 'NA'"),
        ("[Not Supported]", "absent: the tool says 'Not Supported'"),
        ("[Not Found]", "absent: the tool says 'Not Found'"),
        ("N/A (Secondary die)", "absent: the tool says 'N/A (Secondary die)'"),
        ("None", "absent: the tool says 'None'"),
        ("unknown", "absent: the tool says 'unknown'"),
        ("-", "absent: the tool says '-'"),
        ("", "absent: empty"),
        (None, "absent: not in this output"),
        ("[Insufficient Permissions]", "denied: the tool says 'Insufficient Permissions'"),
        ("[GPU requires reset]", "failed: the tool says 'GPU requires reset'"),
        ("[Unknown Error]", "failed: the tool says 'Unknown Error'"),
        ("[GPU is lost]", "failed: the tool says 'GPU is lost'"),
        ("ERR!", "failed: the tool says 'ERR!'"),
        ("12,5", "failed: the tool says '12,5'"),
        ("0x10", "failed: the tool says '0x10'"),
        ([], "failed: '[]' is no number"),
        (True, "failed: 'True' is no number"),
        (float("nan"), "failed: 'nan' is no number"),
        (-1, "failed: -1 is negative"),
    ],
)
def test_what_is_no_number_is_a_reason(said: object, reason: str) -> None:
    assert reading("vram_used_bytes", said) == reason
    assert number(said) is None or said == -1


@pytest.mark.parametrize(("said", "value"), [("0", 0), (" 61234 ", 61234), ("412.35", 412.35)])
def test_what_is_one_is_one(said: object, value: float) -> None:
    assert reading("vram_used_bytes", said) == value


@pytest.mark.parametrize(
    ("quantity", "most"),
    [
        ("gpu_busy_percent", 100),
        ("temp_junction_c", 200),
        ("temp_mem_millicelsius", 200_000),
        ("power_w", 20_000),
        ("power_mw", 20_000_000),
        ("power_input_uw", 20_000_000_000),
        ("vram_used_bytes", 1 << 50),
    ],
)
def test_the_largest_number_of_a_width_is_none(quantity: str, most: int) -> None:
    """65535 and 4294967295 mark what a driver does not have (ROCm/amdsmi, gpu_metrics)."""
    assert reading(quantity, most) == most
    assert reading(quantity, most + 1) == f"failed: {most + 1:g} is more than any card has"
    assert isinstance(reading(quantity, (1 << 64) - 1), str)


def test_the_limit_is_of_the_quantity_and_not_of_the_unit_the_tool_writes() -> None:
    assert reading("vram_used_bytes", 4_294_967_295, MIB) == why_scaled()
    assert reading("vram_used_bytes", 196_592, MIB) == 196_592 * MIB


def why_scaled() -> str:
    return "failed: 4.29497e+09 is more than any card has"


@pytest.mark.parametrize("total", [0, 512 << 20, CARVE_OUT_BYTES])
def test_memory_that_is_a_carve_out_of_the_hosts_is_absent(total: int) -> None:
    """0 on MI300A (ollama#13463), 512 MiB on Strix Halo (rocm-systems#8475, gpustack#4848)."""
    builder = CardBuilder("x")
    builder.take(USED, 0)
    builder.take(TOTAL, total)
    card = builder.card()
    assert card.values == {}
    assert set(card.reasons.values()) == {
        f"absent: {total} bytes of its own, it uses the host's memory (unified)"
    }


def test_more_than_a_carve_out_is_a_cards_own_memory() -> None:
    builder = CardBuilder("x")
    builder.take(USED, 0)
    builder.take(TOTAL, CARVE_OUT_BYTES + 1)
    assert builder.card().values == {USED: 0, TOTAL: CARVE_OUT_BYTES + 1}


def test_reasons_are_short_and_on_one_line() -> None:
    assert why_not("a\n b " * 50) == f"failed: the tool says {('a b ' * 50)[:60]!r}"
