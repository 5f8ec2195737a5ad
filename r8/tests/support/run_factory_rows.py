"""The journal rows of a synthetic run: made up, on one timeline of nanoseconds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r8.tests.support.run_factory import SyntheticRun

Row = dict[str, Any]

S = 1_000_000_000
WALL_OFFSET_NS = 1_789_999_000 * S
SECTOR = 512
# Instants of the synthetic timeline, nanoseconds on the monotonic clock.
RUN_BEGIN = 1000 * S
POPULATE = (1005 * S, 1010 * S)
FLUSH = (1010 * S, 1012 * S)
DURABLE = 1013 * S
DROP = (1014 * S, 1015 * S)
REWARM = (1016 * S, 1018 * S)
MEASURE_BEGIN = 1020 * S
WARM_AFTER_S = 3
CONTROL_AFTER_S = 3
# The disk is sampled at 10 Hz, with a phase of its own against the marks.
TICK = S // 10
PHASE = TICK // 2
HOST = "host-1"


def measure_end(spec: SyntheticRun) -> int:
    """When the measure phase of this run ends."""
    slowest = max(*spec.ttft_s, spec.read_s) + spec.output_tokens * spec.itl_s
    return MEASURE_BEGIN + round((slowest + 0.5) * S)


def warm_window(spec: SyntheticRun) -> tuple[int, int]:
    """Begin and end of the warm phase."""
    begin = measure_end(spec) + WARM_AFTER_S * S
    slowest = max(spec.warm_ttft_s or (0.0,)) + spec.output_tokens * spec.itl_s
    return begin, begin + round((slowest + 0.5) * S)


def control_windows(spec: SyntheticRun) -> dict[str, tuple[int, int]]:
    """Begin and end of each negative control."""
    first = warm_window(spec)[1] + CONTROL_AFTER_S * S
    return {
        "warm_read": (first, first + 2 * S),
        "random_prompt": (first + 4 * S, first + 6 * S),
    }


def run_end(spec: SyntheticRun) -> int:
    """When the run ends."""
    return control_windows(spec)["random_prompt"][1] + 3 * S


def event_rows(spec: SyntheticRun) -> list[Row]:
    """Phase marks and what the lab says it did."""
    expected = spec.expectation
    files = 2 * expected.hit_bytes // spec.chunk_bytes
    config = {
        "instance": "a",
        "enable_prefix_caching": spec.enable_prefix_caching,
        "chunk_tokens": spec.chunk_tokens,
        "cpu_tier_bytes": spec.cpu_tier_bytes,
        "disk_path": "/kv",
        "kv_connector": "LMCacheConnectorV1",
        "source": "synthetic",
    }
    durable = {
        "files": files if spec.durable else files - 1,
        "bytes": files * spec.chunk_bytes,
        "expected_files": files,
        "expected_bytes": files * spec.chunk_bytes,
        "quiet_ns": S,
    }
    marks: list[tuple[str, int, Row]] = [
        ("run_begin", RUN_BEGIN, {}),
        ("patch_state", RUN_BEGIN + 1, _patch_state(spec)),
        ("engine_started", RUN_BEGIN + S, {"instance": "a", "pid": 100}),
        ("server_config", RUN_BEGIN + 2 * S, config),
        ("populate_begin", POPULATE[0], {}),
        ("populate_end", POPULATE[1], {}),
        ("flush_begin", FLUSH[0], {}),
        ("flush_end", FLUSH[1], {}),
        ("durable", DURABLE, durable),
    ]
    if spec.dropped:
        drop = {"rc": spec.drop_rc, "command": "drop", "error": None}
        marks += [("drop_begin", DROP[0], {}), ("drop_end", DROP[1], drop)]
    marks += [("cold_checked", DROP[1] + 1, {})]
    marks += [("rewarm_begin", REWARM[0], {}), ("rewarm_end", REWARM[1], {})]
    marks += [("measure_begin", MEASURE_BEGIN, {}), ("measure_end", measure_end(spec), {})]
    if spec.warm_ttft_s is not None:
        begin, end = warm_window(spec)
        marks += [("warm_begin", begin, {}), ("warm_end", end, {})]
    if spec.controls:
        dropped = control_windows(spec)["warm_read"][0] - S
        drop = {"rc": spec.control_drop_rc, "command": "drop", "error": None}
        marks += [("control_drop_begin", dropped - 1, {}), ("control_drop_end", dropped, drop)]
        for name, (begin, end) in control_windows(spec).items():
            detail = {"control": name}
            marks += [("control_begin", begin, detail), ("control_end", end, detail)]
    marks += [("engine_stopped", run_end(spec) - 1, {"instance": "a"})]
    marks += [("run_end", run_end(spec), {})]
    return [
        {"name": n, "mono_ns": t, "wall_ns": t + WALL_OFFSET_NS, "detail": json.dumps(d)}
        for n, t, d in marks
    ]


def _patch_state(spec: SyntheticRun) -> Row:
    patched = spec.patched
    return {
        "expected": "patched" if patched else "unpatched",
        "lmcache_version": "0.5.0",
        "target_sha256": ("0a" if patched else "0b") * 32,
        "base_sha256": "0b" * 32,
        "module_sha256": "ab" * 32 if patched else None,
    }


def request_rows(spec: SyntheticRun) -> tuple[list[Row], list[Row]]:
    """Requests of every phase, and their stream chunks."""
    planned: list[tuple[str, int, int, float, bool]] = []
    sessions = range(len(spec.ttft_s))
    planned += [("populate", s, POPULATE[0] + s, 0.4, True) for s in sessions]
    planned += [("flush", 100 + s, FLUSH[0] + s, 0.4, True) for s in sessions]
    planned.append(("rewarm", 200, REWARM[0], 0.6, True))
    last_ok = len(spec.ttft_s) - spec.failures
    for session, ttft_s in enumerate(spec.ttft_s):
        planned.append(("measure", session, MEASURE_BEGIN, ttft_s, session < last_ok))
    for session, ttft_s in enumerate(spec.warm_ttft_s or ()):
        planned.append(("warm", session, warm_window(spec)[0], ttft_s, True))
    if spec.controls:
        for number, (begin, _) in enumerate(control_windows(spec).values()):
            planned.append(("control", 300 + number, begin, 0.3, True))
    requests, chunks = [], []
    for phase, session, at, ttft_s, ok in planned:
        request = _request(spec, phase, session, at, ttft_s, ok=ok)
        requests.append(request)
        chunks += _chunks(spec, request) if ok else []
    return requests, chunks


def _request(
    spec: SyntheticRun, phase: str, session: int, at: int, ttft_s: float, *, ok: bool
) -> Row:
    sent = at + round(spec.send_lag_s * S)
    first = sent + round(ttft_s * S)
    last = first + round((spec.output_tokens - 1) * spec.itl_s * S)
    row: Row = {
        "request_id": f"{phase}-{session}",
        "instance": "a",
        "phase": phase,
        "session": session,
        "endpoint": "completions",
        "prompt_tokens_planned": spec.prompt_tokens,
        "request_bytes": 4096,
        "scheduled_ns": at,
        "connected_ns": at - 1000,
        "sent_ns": sent,
        "sent_done_ns": sent + 1000,
        "stamp": "user",
    }
    if not ok:
        return {**row, "outcome": "timeout", "error": "no answer within 60 s"}
    return {
        **row,
        "outcome": "ok",
        "http_status": 200,
        "prompt_tokens": spec.prompt_tokens,
        "output_tokens": spec.output_tokens,
        "finish_reason": "length",
        "server_request_id": f"cmpl-{phase}-{session}",
        "output_text": f"{spec.output_text} {session}",
        "output_token_ids": list(range(session, session + spec.output_tokens)),
        "first_byte_ns": first - 1000,
        "first_content_ns": first,
        "first_answer_ns": first,
        "last_content_ns": last,
        "done_ns": last + 2000,
    }


def _chunks(spec: SyntheticRun, request: Row) -> list[Row]:
    gap = round(spec.itl_s * S)
    first = request["first_content_ns"]
    kinds = ["content"] * spec.output_tokens + ["usage", "done"]
    rows = []
    for seq, kind in enumerate(kinds):
        content = kind == "content"
        arrival = first + seq * gap if content else request["last_content_ns"] + 1000
        row = {"request_id": request["request_id"], "seq": seq, "arrival_ns": arrival}
        rows.append({**row, "kind": kind, "tokens": 1 if content else None, "event_bytes": 80})
    return rows


def probe_rows(spec: SyntheticRun) -> list[Row]:
    """Block devices at 10 Hz, engine processes at 2 Hz, the topology once."""
    rows = topology_rows(spec)
    readers: dict[str, int] = {"vda": spec.system_read_bytes}
    if spec.device_bytes is not None:
        readers[spec.kv_device] = spec.device_bytes
        readers.update(dict.fromkeys(spec.kv_members, 0))
        for member in spec.kv_members:
            readers[member] = spec.device_bytes // len(spec.kv_members)
    readers.update(dict.fromkeys(spec.other_kv_devices, spec.other_device_read_bytes))
    first_tick, last_tick = MEASURE_BEGIN - 8 * S + PHASE, run_end(spec)
    middle = MEASURE_BEGIN + round(spec.read_s * S / 2)
    for at in range(first_tick, last_tick, TICK):
        for device, read_bytes in readers.items():
            late = spec.epoch_grows and device == spec.kv_device and at > middle
            row = _reading(
                "disk", device, at, "read_sectors", _read_by(spec, device, read_bytes, at)
            )
            rows.append({**row, "epoch": int(late)})
            rows.append(_reading("disk", device, at, "write_sectors", 9000))
    if spec.process_bytes is not None:
        for at in range(first_tick, last_tick, 5 * TICK):
            done = _evenly(spec.process_bytes, at, MEASURE_BEGIN, spec.read_s)
            rows.append(_reading("process", "a:100:5000", at, "read_bytes", 7_000_000 + done))
            if spec.control_file_bytes is not None:
                rows.append(_reading("process", "a:100:5000", at, "rchar", _control_read(spec, at)))
    return rows


def _control_read(spec: SyntheticRun, at: int) -> int:
    """What the engine read of files; of its measured reads only the control's matter here."""
    hit = spec.expectation.hit_bytes // spec.expectation.sessions
    total = hit if spec.control_file_bytes == -1 else spec.control_file_bytes or 0
    return 9_000_000 + _evenly(total, at, control_windows(spec)["warm_read"][0], 0.3)


def _read_by(spec: SyntheticRun, device: str, read_bytes: int, at: int) -> int:
    done = _evenly(read_bytes, at, MEASURE_BEGIN, spec.read_s)
    if device == spec.kv_device and spec.controls:
        begin = control_windows(spec)["warm_read"][0]
        done += _evenly(spec.warm_control_device_bytes, at, begin, 0.3)
    return 1000 + done // SECTOR


def _evenly(total: int, at: int, begin: int, duration_s: float) -> int:
    share = (at - begin) / (duration_s * S)
    return round(total * min(1.0, max(0.0, share)))


def _reading(probe: str, device: str, at: int, counter: str, value: int) -> Row:
    row: Row = {"probe": probe, "host": HOST, "device": device, "counter": counter}
    return {**row, "value": value, "mono_ns": at, "wall_ns": at + WALL_OFFSET_NS, "epoch": 0}


def topology_rows(spec: SyntheticRun) -> list[Row]:
    """Devices, their members and mounts, at the begin and the end."""
    rows = []
    mounts = {spec.kv_mount_device or spec.kv_device: "/kv", "vda": "/"}
    kinds = {"vda": "disk", **dict.fromkeys(spec.kv_members, "nvme-head")}
    devices = [spec.kv_device, *spec.kv_members, *spec.other_kv_devices, "vda"]
    for at in (RUN_BEGIN + 2 * S, run_end(spec) - 2 * S):
        for device in devices:
            facts = {
                "kind": kinds.get(device, "md" if spec.kv_members else "loop"),
                "members": ",".join(spec.kv_members) if device == spec.kv_device else "",
                "mount": mounts.get(device, ""),
                "state": "live",
            }
            base: Row = {"probe": "topology", "host": HOST, "device": device, "mono_ns": at}
            base["wall_ns"] = at + WALL_OFFSET_NS
            rows += [{**base, "counter": name, "text": text} for name, text in facts.items()]
            rows.append({**base, "counter": "diskseq", "value": 1})
    return rows


def residency_rows(spec: SyntheticRun) -> list[Row]:
    """Page-cache residency of every KV file after populate and after the drop."""
    files = spec.expectation.hit_bytes // spec.chunk_bytes
    rows: list[Row] = []
    for moment, at, share in (
        ("after_populate", DURABLE, 1.0),
        ("after_drop", DROP[1], spec.resident_share),
    ):
        rows += [
            {
                "moment": moment,
                "host": HOST,
                "path": f"chunk-{number}.pt",
                "size_bytes": spec.chunk_bytes,
                "resident_bytes": round(spec.chunk_bytes * share),
                "device": spec.kv_mount_device or spec.kv_device,
                "method": "synthetic",
                "self_test": spec.residency_self_test,
                "mono_ns": at,
            }
            for number in range(files)
        ]
    if spec.controls:
        at, share = control_windows(spec)["warm_read"][0] - S // 2, spec.control_resident_share
        rows += [
            {
                **rows[0],
                "moment": "warm_read",
                "path": f"control-{number}.pt",
                "resident_bytes": round(spec.chunk_bytes * share),
                "mono_ns": at,
            }
            for number in range(files // spec.expectation.sessions)
        ]
    return rows


def calibration_rows(spec: SyntheticRun) -> list[Row]:
    """What the device and the client give by themselves."""
    rows: list[Row] = []
    speeds = {"ceiling": spec.ceiling_bytes_per_s, "serial": spec.serial_bytes_per_s}
    for name, speed in speeds.items():
        if speed is not None:
            row: Row = {"name": name, "tool": "fio", "host": HOST, "direct": True}
            row["device"] = spec.kv_device
            rows.append({**row, "read_bytes": 5 * speed, "elapsed_ns": 5 * S, "mono_ns": RUN_BEGIN})
    if spec.client_calibrated:
        row = {"name": "client", "tool": "null-server", "device": "-", "mono_ns": RUN_BEGIN}
        row["host"] = HOST
        row |= {"n": 100, "send_lag_p99_ns": 2_000_000}
        rows.append({**row, "ttft_error_p50_ns": 300_000, "ttft_error_max_ns": 2_500_000})
    return rows
