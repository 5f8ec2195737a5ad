"""The certificate: every rule with its stable id, in the order it is printed.

C1-C11 prove the cold read, or for a recompute arm that there was none. E1-E3 are the engine's
soundness, Q1-Q3 the quality of the run, G1 its GPU memory, S1 the shares of several engines, W1-W3
the durability of what was written, N1 and N2 the negative controls. An id is never reused for
another meaning. A rule that a run gives no subject (C7 without a recompute arm, C9 without a link,
G1 without a GPU) says so: it is neither held nor an objection.
"""

from __future__ import annotations

from r8.forensics import (
    balance,
    client,
    coldness,
    continuity,
    controls,
    counters,
    engine,
    hits,
    instances,
    link,
    patch,
    placement,
    recompute,
    rules_written,
    surroundings,
    trouble,
    work,
    work_engine,
)
from r8.forensics.rule import Rule
from r8.units import mib, s_from_ns

RULES: tuple[Rule, ...] = (
    Rule(
        rule_id="C1",
        title="the KV files lie on the device the arm names",
        reason="A pool on another disk measures that disk.",
        inputs="residency rows after_drop (device of each file's st_dev); topology `mount` of "
        "run.kv_device; run.kv_dir",
        threshold="every file; no tolerance",
        of_device=True,
        checks=placement.kv_on_named_device,
        of_kv=True,
    ),
    Rule(
        rule_id="C2",
        title="the populate is durable",
        reason="Dirty pages survive a drop: what is still being written is read from memory.",
        inputs="event `durable` (files, bytes, expected, quiet_ns); disk `write_sectors` of the KV "
        "device from quiet_ns before it to drop_begin",
        threshold=f"exact files and bytes; at most {mib(coldness.QUIET_WRITE_BYTES_MAX):.0f} MiB "
        "written in the quiet interval (a file system's own log, less than a chunk under way)",
        of_device=True,
        checks=coldness.populate_durable,
        of_kv=True,
    ),
    Rule(
        rule_id="C3",
        title="the page cache was dropped, and no KV file is in it",
        reason="A drop can fail, hang, or reach another file system; the reads would be warm.",
        inputs="event `drop_end` (rc); residency rows after_drop between drop_end and "
        "measure_begin, with the method's self-test",
        threshold=f"rc 0; every file at most {coldness.RESIDENT_SHARE_MAX:.0%} resident; as many "
        "files as were expected on disk; the self-test saw an evicted file as evicted",
        checks=coldness.dropped_and_cold,
        of_kv=True,
    ),
    Rule(
        rule_id="C4",
        title="the bytes balance: engine, device, members, process",
        reason="Only bytes that left the device were read from it; logs alone name no tier.",
        inputs="metrics engine_hit_bytes, device_read_bytes, process_read_bytes of phase measure; "
        "disk `read_sectors` of members and of whole devices outside the KV tier; without a KV "
        "engine the bytes the workers say they moved stand for the hits",
        threshold=f"{balance.BALANCE_TOLERANCE:.0%} both ways (metadata, one sampling interval); "
        f"process at least {1 - balance.BALANCE_TOLERANCE:.2f} of the device and at most the "
        f"larger of {balance.BALANCE_TOLERANCE:.0%} and "
        f"{mib(balance.PROCESS_EXCESS_BYTES):.0f} MiB above it, or else matched by reads of other "
        "devices (libraries are read again after a drop: 7-14 MiB were seen)",
        of_device=True,
        checks=balance.bytes_balance,
        of_kv=True,
        work_checks=work.bytes_balance,
    ),
    Rule(
        rule_id="C5",
        title="no other KV device was read",
        reason="The tier under comparison may serve the arm it is compared with.",
        inputs="run.other_kv_devices; disk `read_sectors` of each over the measure window",
        threshold=f"below {placement.OTHER_DEVICE_SHARE_MAX:.0%} of the cell's KV bytes, each",
        checks=placement.other_devices_quiet,
        of_kv=True,
    ),
    Rule(
        rule_id="C6",
        title="every request hit exactly its whole chunks, none from DRAM",
        reason="A prefix cache or a DRAM tier answers in front of the device; a miss recomputes.",
        inputs="lookup and retrieved lines of each measured request; event `server_config` of each "
        "instance (enable_prefix_caching, chunk_tokens, cpu_tier_bytes, read back from the running "
        "server); metrics engine_hit_bytes and device_read_bytes",
        threshold="chunk*floor((prompt-1)/chunk) tokens exactly; 0 computed tokens; hits not "
        f"covered by the device at most {balance.BALANCE_TOLERANCE:.0%}",
        of_device=True,
        checks=hits.hits_exact,
        of_kv=True,
        of_engine=True,
    ),
    Rule(
        rule_id="C7",
        title="the recompute arm read no KV",
        reason="A baseline that loads part of what it should compute flatters nobody but itself.",
        inputs="run.recompute; disk `read_sectors` of every KV device over the measure window; "
        "`kv_connector` of event `server_config`; lookup and retrieved lines",
        threshold=f"below {recompute.RECOMPUTE_READ_SHARE_MAX:.0%} of what the cell reads with a "
        "tier (libraries, metadata); no connector in the running server; 0 tokens found",
        checks=recompute.recompute_reads_no_kv,
    ),
    Rule(
        rule_id="C8",
        title="no counter regressed, no device changed, no hole in the samples",
        reason="A replaced device restarts its counters: differences over it mean nothing.",
        inputs="disk counters and epochs of all KV devices over the measure window; topology "
        "diskseq, state, members, kind on both sides of it; process samples of each instance",
        threshold="no step backwards, one epoch, the same identity; no gap above "
        f"{s_from_ns(continuity.SAMPLE_GAP_NS_MAX):.0f} s (the probe ticks ten times a second)",
        of_device=True,
        checks=continuity.nothing_regressed,
    ),
    Rule(
        rule_id="C9",
        title="nothing came faster than the declared link",
        reason="A read faster than the link is a read from a cache on this side of it.",
        inputs="run.link_bytes_per_s; disk `read_sectors`, `in_flight` of the KV device; receive "
        "counters of the network adapter",
        threshold=f"the fastest {s_from_ns(link.PEAK_WINDOW_NS):.0f} s at most the link and "
        f"{link.LINK_TOLERANCE:.0%} (stamps, nominal rates), less what was in flight at its begin",
        of_device=True,
        checks=link.link_not_exceeded,
    ),
    Rule(
        rule_id="C10",
        title="the load client was not the bottleneck",
        reason="A client that is late offers less load; one that is slow times itself.",
        inputs="scheduled and sent instants of measured requests; calibration row `client` against "
        "a null server",
        threshold=f"send lag at most {client.SEND_LAG_SHARE_MAX:.0%} of the TTFT p50 (the "
        f"tolerance of a claim); median TTFT error at most {client.TTFT_ERROR_SHARE_MAX:.0%} "
        "(a fifth of it); without a KV engine: no worker behind the barrier by more than "
        f"{work.BARRIER_LAG_SHARE_MAX:.0%} of the shortest load, and none before it; engines at "
        f"one barrier: all of them load together for {work_engine.OVERLAP_SHARE_MIN:.0%} of the "
        "longest load",
        checks=client.client_kept_up,
        work_checks=work.released_together,
    ),
    Rule(
        rule_id="C11",
        title="the code the arm names was in force",
        reason="A patch applied too late, to another tree, or loaded and inactive, changes nothing "
        "and is measured all the same.",
        inputs="run.patch and event `patch_state`; R8-PATCH loaded and read lines of the engine",
        threshold="the module's SHA-256 exactly; bytes exactly the sessions' chunks; at least "
        "bytes/segment size segments; 0 misses. Unpatched: no R8-PATCH line and the base digest, "
        "or mode=serial",
        checks=patch.patch_in_force,
        of_kv=True,
        of_engine=True,
    ),
    Rule(
        rule_id="E1",
        title="the engine did not fall back to recompute",
        reason="An engine without its KV tier answers, is slow, and reports itself healthy.",
        inputs="engine_log lines of kind fatal, each instance",
        threshold="none; an instance without any line is unknown",
        checks=engine.engine_sound,
        of_kv=True,
        of_engine=True,
    ),
    Rule(
        rule_id="E2",
        title="log and counters of the engine agree, request by request",
        reason="A line can be lost and a counter can be of another engine: two witnesses, one "
        "story.",
        inputs="server_request_id of measured requests; lookup lines; counters "
        f"{counters.EXTERNAL_HITS} and {counters.PREFIX_HITS} of each instance's /metrics",
        threshold="every response joined; counters exactly the sum of the lines, and 0; an engine "
        "as a loader: its log names the directory and its size, and what it says its load took is "
        f"not above what was seen by more than {work_engine.SAID_ERROR_S:g} s (its rounding)",
        checks=counters.counters_agree,
        work_checks=work_engine.words_agree,
        of_kv=True,
        of_engine=True,
    ),
    Rule(
        rule_id="E3",
        title="no KV load of the engine failed or timed out",
        reason="A load without a buffer waits a minute, is given up, and the engine goes on: only "
        "its log says why a request was slow, or was computed after all.",
        inputs="engine_log lines of kind trouble and alloc_failed, each instance, its whole life",
        threshold="no line of trouble; between two loads or stores at most "
        f"{trouble.REFUSALS_A_CHUNK} refused buffers a chunk of a session and rank (one is usual: "
        "a full tier refuses, evicts and grants; a log without any is unknown)",
        checks=trouble.no_load_failed,
        of_kv=True,
        of_engine=True,
    ),
    Rule(
        rule_id="Q1",
        title="every planned request was answered in full",
        reason="Dropping failures flatters every percentile.",
        inputs="requests of phase measure: outcome, session, usage tokens",
        threshold="no failure, each planned session once, exact token counts; without a KV engine: "
        "each planned worker once, none failed, all bytes of the files less at most "
        f"{work.HEADER_SHARE_MAX:.1%} of headers",
        checks=engine.every_request_answered,
        work_checks=work.every_worker_done,
    ),
    Rule(
        rule_id="Q2",
        title="the run is whole and its phases are in order",
        reason="A recovered or reordered run shows what happened, not what was planned.",
        inputs="run.complete; events " + ", ".join(engine.MILESTONES),
        threshold="every milestone, in order, measured exactly once",
        checks=engine.run_whole,
    ),
    Rule(
        rule_id="Q3",
        title="the host was the same at the end as at the begin",
        reason="A governor, a link or a driver that changes in a run changes what it measures.",
        inputs="event `environment` at begin and end: digests of its stable sections, changes",
        threshold="no section changed; load, memory in use and idle link speeds are no part of it",
        checks=surroundings.host_unchanged,
    ),
    Rule(
        rule_id="G1",
        title="no GPU memory of an earlier arm",
        reason="KV that an earlier engine left in HBM is read from nowhere.",
        inputs="event `environment` at begin: memory in use of every GPU; event engine_started",
        threshold=f"at most the larger of {surroundings.RESIDUE_SHARE_MAX:.0%} of a card and "
        f"{mib(surroundings.RESIDUE_FLOOR_BYTES):.0f} MiB (an idle card shows 0.3 GB)",
        checks=surroundings.no_residue,
    ),
    Rule(
        rule_id="S1",
        title="every engine read its own share",
        reason="Engines on one device may serve each other, or one may starve: their sum is right "
        "and their rates are not.",
        inputs="view instance_reads: requests, hit bytes by lookup lines, read_bytes of each "
        "instance's process tree; metric device_read_bytes",
        threshold="requests and hits exactly the share; process bytes from "
        f"{1 - balance.BALANCE_TOLERANCE:.2f} of it to the larger of "
        f"{balance.BALANCE_TOLERANCE:.0%} and {mib(balance.PROCESS_EXCESS_BYTES):.0f} MiB above "
        f"it; the sum within {balance.BALANCE_TOLERANCE:.0%} of the device",
        checks=instances.every_instance_read_its_own,
        of_engine=True,
    ),
    *rules_written.RULES,
    Rule(
        rule_id="N1",
        title="a warm read is refused by C3 and C4",
        reason="A certificate that cannot say no says nothing.",
        inputs="control `warm_read`, once a block, on a session of its own stored first and read "
        "last: retrieved tokens, its own drop, residency after its files were read in, disk "
        "`read_sectors` and the processes' `rchar` over it",
        threshold="C3's own number fails (files above its limit resident) and C4's own (device "
        f"bytes below {1 - balance.BALANCE_TOLERANCE:.2f} of the hits), with the drop done and the "
        "files read by the engine. Unknown where its files were not in the page cache after all, "
        "or the arm reads with O_DIRECT. One run of a block that shows it speaks for the block. "
        "Without a KV engine: the same loads again",
        of_device=True,
        checks=controls.warm_read_is_refused,
        of_block=True,
        of_kv=True,
        work_checks=work.warm_load_is_refused,
    ),
    Rule(
        rule_id="N2",
        title="a random prompt hits nothing",
        reason="If a prompt nobody stored is found in the cache, hits prove nothing.",
        inputs="control `random_prompt`, once a block, of a session nobody stored: hit tokens of "
        "its lookup line",
        threshold="0 tokens. One run of a block that shows it speaks for the block",
        checks=controls.random_prompt_hits_nothing,
        of_block=True,
        of_kv=True,
        of_engine=True,
    ),
)
