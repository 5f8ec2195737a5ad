# The certificate: what every check says, and in `.otherwise` what it means when it did not hold.
# Facts arrive as text with their unit. Of every check: $measured, $limit ($low, $high and $side of a
# range). Of every rule: its title, .why, .reads and .threshold, which names its constants.

mark-refuted = [refuted]
mark-unknown = [unknown]
mark-not-applicable = [does not apply]
nothing-to-look-at = nothing to look at
finding-line = `{ $rule }` { $answer } in `{ $run }`: { $checks }. { $meaning }

## Said by several rules

no-read-counter = { $device }: no read counter around the window
    .otherwise = The disk probe has no sample of { $device } on both sides of the window.
no-measure-window = no measure window
    .otherwise = Event measure_begin or measure_end is missing.
no-measured-request = no measured request
    .otherwise = The run holds no request of phase measure.
no-instance = the run names no instance
    .otherwise = run.json lists no engine instance.
no-engine-log = { $instance }: no engine log
    .otherwise = See raw/server-{ $instance }.log.
no-capture = the environment was not captured at the { $moment }
    .otherwise = Event `environment` of that moment is missing.
no-block-device = no block device at fallback level { $fallback_level }
    .otherwise = At fallback level { $fallback_level } the KV lies on no block device, so no bytes of one are counted.
no-kv-engine = job { $job } runs without a KV engine
    .otherwise = There is no engine to ask.
recompute-reads-no-kv = a recompute arm reads no KV
    .otherwise = Rule C7 checks that.
rule-not-applied = rule { $rule } was not applied
    .otherwise = A claim needs every rule of this R8.

nfs-not-read = NFS mount { $mount }: its counters were not read around the window
nfs-captured-only = NFS mount { $mount } took { $read_bytes } from its server in the window: captured only
nfs-lacks-proven-counter = known with this counter instead of the device's
    .otherwise = That counter was never held against the reads of a server.
nfs-lacks-mount-of-files = known by the mount of every file
    .otherwise = The server's own device stays unseen.
nfs-lacks-writes-of-server = known from the server only
    .otherwise = What the server still writes is not counted on this host.
nfs-lacks-age-of-mount = known by age and counters of the mount
    .otherwise = They only grow while the mount lasts.
nfs-lacks-link = known with a declared link and the receive counters of its adapter

## C1

rule-c1 = the KV files lie on the device the arm names
    .why = A pool on another disk measures that disk.
    .reads = residency rows after_drop (device of each file's st_dev); topology `mount` of run.kv_device; run.kv_dir
    .threshold = every file; no tolerance
c1-no-file-seen = no KV file was looked at after the drop
    .otherwise = Residency rows are missing.
c1-files-on-device = { $here } of { $files } KV files on { $device }, { $measured } elsewhere ({ $places }), { $unknown } not known
    .otherwise = The arm names { $device } for { $directory }; look at the site's mounts.
c1-no-mount = no mount of { $device } in the topology
    .otherwise = The topology probe did not see it.
c1-directory-on-mount = KV directory { $directory } under mount { $mounts } of { $device }: { $measured }
    .otherwise = The KV directory lies outside the device's mount.

## C2

rule-c2 = the populate is durable
    .why = Dirty pages survive a drop: what is still being written is read from memory.
    .reads = event `durable` (files, bytes, expected, quiet_ns); disk `write_sectors` of the KV device from quiet_ns before it to drop_begin
    .threshold = exact files and bytes; at most { $written_bytes } written in the quiet interval (a file system's own log, less than a chunk under way), sampled over at least { $sampled_share } of it
c2-not-durable = no `durable` event
    .otherwise = Nobody checked that the populate was written out.
c2-files-written = { $measured } files written = { $limit } expected
    .otherwise = The pool on disk is not what the sessions should have left; see the Stored lines of the engine log.
c2-bytes-written = { $measured } written = { $limit } expected
    .otherwise = The pool on disk is not what the sessions should have left; see the Stored lines of the engine log.
c2-pool-empty = { $measured } written
    .otherwise = The populate left nothing on disk.
c2-pool-unknown = { $key } of the pool not known
    .otherwise = The durable event lacks { $key }.
c2-covers-the-cell = pool { $measured } >= { $limit } of the measured sessions
    .otherwise = The measured sessions cannot all be on disk.
c2-no-quiet-interval = no quiet interval before a drop
    .otherwise = Events drop_begin or quiet_ns missing.
c2-writes-not-sampled = { $device }: write counter not sampled for { $quiet_ns } before the drop
    .otherwise = The disk probe is silent there.
c2-writes-quiet = { $device } wrote { $measured } in the last { $span_ns } before the drop, { $low } to { $high } allowed
    .otherwise = { $side ->
        [below] The write counter went backwards.
       *[other] The populate was still being written when the cache was dropped: dirty pages survive a drop.
    }

## C3

rule-c3 = the page cache was dropped, and no KV file is in it
    .why = A drop can fail, hang, or reach another file system; the reads would be warm.
    .reads = event `drop_end` (rc); residency rows after_drop between drop_end and measure_begin, with the method's self-test
    .threshold = rc 0; every file at most { $most_share } resident; as many files as were expected on disk; the self-test saw an evicted file as evicted
c3-no-drop = no drop
    .otherwise = The page cache was never dropped: the reads may be warm.
c3-drop = drop returned { $measured }
    .otherwise = The drop failed: { $error }.
c3-residency-not-read = residency between drop and measurement not known
    .otherwise = There are no residency rows.
c3-files-looked-at = { $measured } files looked at = { $limit } expected
    .otherwise = Not every KV file was looked at.
c3-self-test = self-test of the method passed for { $passed } of { $limit } files
    .otherwise = The method did not see an evicted file as evicted: residency must be read by the files' owner or root.
c3-resident = { $measured } of { $known } files above { $most_share } resident, { $cached_bytes } of { $size_bytes } in the page cache, most { $worst_share } of { $worst }, { $lost } files not known
    .otherwise = KV files are still in the page cache: the drop did not reach this file system.
c3-residency-unknown = { $lost } files not known, none of the other { $known } above { $most_share } resident
    .otherwise = Size or residency of these files is absent: { $reason }.

## C4

rule-c4 = the bytes balance: engine, device, members, process
    .why = Only bytes that left the device were read from it; logs alone name no tier.
    .reads = metrics engine_hit_bytes, device_read_bytes, process_read_bytes of phase measure; disk `read_sectors` of members and of whole devices outside the KV tier; without a KV engine the bytes the workers say they moved stand for the hits
    .threshold = { $tolerance_share } both ways (metadata, one sampling interval); process at least { $floor_share } of the device and at most the larger of { $tolerance_share } and { $excess_bytes } above it, or else matched by reads of other devices (libraries are read again after a drop: 7-14 MiB were seen); behind a fabric, received bytes over device bytes within { $wire_share } of the run's own calibration
c4-hits-unknown = engine hit bytes not known
    .otherwise = The engine log lacks lookup lines.
c4-nothing-hit = engine hit { $measured }, { $device } read { $read_bytes }
    .otherwise = The engine loaded no KV: it recomputed.
c4-device-against-hits = { $device } read { $read_bytes } / engine hit { $hit_bytes } = { $measured } within { $low } to { $high }
    .otherwise = { $side ->
        [below] Fewer bytes than hits left the device: a cache served the rest.
       *[other] The device read more than the hits: something else reads it.
    }
c4-moved-unknown = bytes of the workers not known
    .otherwise = A worker did not say what it moved.
c4-device-against-moved = { $device } read { $read_bytes } / workers moved { $moved_bytes } = { $measured } within { $low } to { $high }
    .otherwise = { $side ->
        [below] Fewer bytes than were loaded left the device: a cache served the rest.
       *[other] The device read more than was loaded: something else reads it.
    }
c4-window-writes = the window writes
    .otherwise = W1 balances its writes, W2 what is read.
c4-members = members read { $measured } against { $read_bytes } of { $device }, { $low } to { $high } allowed
    .otherwise = Members and stack disagree: a member serves something else, or a path was counted twice.
c4-members-unknown = members { $members }: no read counter
    .otherwise = A member was not sampled.
c4-process = process read { $measured } >= { $limit } ({ $floor_share } of the device)
    .otherwise = Another process read the device: these bytes are not the engine's.
c4-process-unknown = process read_bytes not known
    .otherwise = The process probe is silent.
c4-process-excess = process read { $measured } more than the device <= { $limit }
c4-elsewhere = process read { $excess_bytes } more than the device, { $allowed_bytes } allowed; other devices read { $measured } >= { $limit }
    .otherwise = The engine's surplus reads came from no device that was watched.
c4-elsewhere-unknown = process read { $excess_bytes } more than the device, { $allowed_bytes } allowed; reads of other devices not known
    .otherwise = The engine read more than KV and no other device was sampled.
c4-no-wire = no wire behind { $device }
    .otherwise = Its bytes cross no network: there is no adapter to count them.
c4-wire = wire { $wire_bytes } / device { $read_bytes } = { $now_ratio }, calibrated { $calibrated_bytes } / { $known_bytes } = { $calibrated_ratio }: { $measured } of it, within { $low } to { $high }
    .otherwise = The adapter received other bytes than the device delivered.
c4-wire-not-calibrated = wire against payload not calibrated in this run
    .otherwise = A known O_DIRECT read must precede the phases; it needs to read the device.
c4-wire-unknown = bytes received by the adapter not known
    .otherwise = The NIC probe is silent.

## C5

rule-c5 = no other KV device was read
    .why = The tier under comparison may serve the arm it is compared with.
    .reads = run.other_kv_devices; disk `read_sectors` of each over the measure window
    .threshold = below { $most_share } of the cell's KV bytes, each
c5-no-other-device = the site names no other KV device
    .otherwise = There is no other tier KV could come from.
c5-other-device-read = { $device } read { $read_bytes } / { $kv_bytes } of KV = { $measured } < { $limit }
    .otherwise = { $device } was read during the measurement: KV may have come from it.

## C6

rule-c6 = every request hit exactly its whole chunks, none from DRAM
    .why = A prefix cache or a DRAM tier answers in front of the device; a miss recomputes.
    .reads = lookup and retrieved lines of each measured request; event `server_config` of each instance (enable_prefix_caching, chunk_tokens, cpu_tier_bytes, read back from the running server); metrics engine_hit_bytes and device_read_bytes
    .threshold = chunk*floor((prompt-1)/chunk) tokens exactly; 0 computed tokens; hits not covered by the device at most { $most_share }
c6-hit-tokens = { $exact } of { $requests } requests hit { $chunk }*floor((prompt-1)/{ $chunk }) = { $planned } tokens, { $unseen } without a lookup line
    .otherwise = The engine log lacks the lookup line of a request.
c6-wrong-hit-tokens = { $exact } of { $requests } requests hit { $chunk }*floor((prompt-1)/{ $chunk }) = { $planned } tokens, { $first } hit { $hit } of { $want }, { $unseen } without a lookup line
    .otherwise = A request did not load exactly its populated chunks; see its lookup line in the engine log.
c6-prefix-cache = most tokens in the engine's own prefix cache { $measured } = { $limit }, { $known } of { $requests } requests known
    .otherwise = The engine answered from its own prefix cache, or did not say.
c6-retrieved = { $measured } tokens retrieved by { $requests } requests = { $limit }
    .otherwise = What was found was not all loaded: the engine recomputed the rest.
c6-config-not-read = { $instance }: the running server's configuration was not read
    .otherwise = A request for a setting is no proof that it is in force.
c6-setting = { $instance }: { $key } { $measured } = { $limit }
    .otherwise = The running server's { $key } is not what the plan assumes.
c6-nothing-hit = engine hit { $measured }
    .otherwise = The engine loaded no KV: it recomputed.
c6-dram-hits = hits not covered by the device { $measured } <= { $limit }
    .otherwise = A tier in DRAM served hits: no log line names the tier, the bytes do.
c6-dram-unknown = bytes from the DRAM tier not known
    .otherwise = Hit bytes or device bytes are missing.

## C7

rule-c7 = the recompute arm read no KV
    .why = A baseline that loads part of what it should compute flatters nobody but itself.
    .reads = run.recompute; disk `read_sectors` of every KV device over the measure window; `kv_connector` of event `server_config`; lookup and retrieved lines
    .threshold = below { $most_share } of what the cell reads with a tier (libraries, metadata); no connector in the running server; 0 tokens found
c7-no-prompt = job { $job } computes no prompt
    .otherwise = Without a prompt there is no KV.
c7-arm-has-kv = arm { $arm } has a KV tier
    .otherwise = Only an arm that recomputes must read none.
c7-device-read = { $device } read { $read_bytes } / { $kv_bytes } of a cell with KV = { $measured } < { $limit }
    .otherwise = { $device } was read: this arm did not only compute.
c7-connector = { $instance }: kv_connector { $measured } = { $limit }
    .otherwise = The running server has a KV connector: it may load what it should compute.
c7-connector-unknown = { $instance }: KV connector of the running server not known
    .otherwise = The server's own configuration was not read back.
c7-tokens-found = tokens hit { $hit }, prefix-cached { $computed }, retrieved { $retrieved }; most { $measured } = { $limit }
    .otherwise = A measured request found tokens in a cache.

## C8

rule-c8 = no counter regressed, no device changed, no hole in the samples
    .why = A replaced device restarts its counters: differences over it mean nothing.
    .reads = disk counters and epochs of all KV devices over the measure window; topology diskseq, state, members, kind on both sides of it; states of controllers and links; process samples of each instance
    .threshold = no step backwards, one epoch, the same identity; no gap above { $gap_ns } (the probe ticks ten times a second)
c8-not-sampled = { $seen } of { $devices } KV devices sampled in the window
    .otherwise = The disk probe did not watch every KV device.
c8-backwards = { $measured } of { $steps } counter steps went backwards
    .otherwise = A device was replaced or its counters restarted: byte counts over the window mean nothing.
c8-epochs = { $measured } of { $steps } counter steps began a new epoch
    .otherwise = A device was replaced or its counters restarted: byte counts over the window mean nothing.
c8-gap = longest gap between samples { $measured } <= { $limit }
    .otherwise = The probe was stopped inside the window; a regression could hide there.
c8-unchanged = { $device }: diskseq { $diskseq }, state and members unchanged
c8-changed = { $device }: { $changes }
    .otherwise = { $device } was replaced or changed state.
c8-topology-not-read = { $device }: topology not read on both sides of the window
    .otherwise = Nobody looked whether the device is still the same one.
c8-no-controller-state = no controller state around the window ({ $transports })
    .otherwise = The NVMe probe is silent, and a link that fails does not show in disk counters.
c8-state = { $probe } { $device }: { $counter } { $words } in { $samples } samples, { $lost } without a value, { $epochs } epochs
    .otherwise = { $device } was not up, or not the same, all through the window.
c8-no-process = { $instance }: no process sampled
    .otherwise = The process probe is silent.
c8-process = { $instance }: { $measured } of { $processes } processes lived through the window
    .otherwise = The engine was restarted inside the window.

## C9

rule-c9 = nothing came faster than the declared link
    .why = A read faster than the link is a read from a cache on this side of it.
    .reads = run.link_bytes_per_s; disk `read_sectors`, `in_flight` of the KV device; receive counters of the network adapter
    .threshold = the fastest { $window_ns } at most the link and { $tolerance_share } (stamps, nominal rates), less what was in flight at its begin
c9-no-link = no link is declared for { $device } ({ $kind })
    .otherwise = Without a fabric between host and device there is no link to exceed.
c9-kind-unknown = { $device }: kind and transport not known
    .otherwise = The topology probe is silent.
c9-link-not-declared = { $device } is reached over { $fabrics }, its link is not declared
    .otherwise = Declare link_bytes_per_s of the device in the site file.
c9-counter-not-read = { $device }: { $counter } not read around the window
    .otherwise = The probe is silent.
c9-one-reading = { $device }: { $counter } read too seldom
    .otherwise = One reading makes no rate.
c9-peak = { $device } { $counter }: at most { $moved_bytes } in { $span_ns } = { $measured } <= { $limit } (link { $link_bytes_per_s } and { $tolerance_share })
    .otherwise = Bytes came faster than the declared link carries them: a cache on this side of it, or a link declared too slow.

## C10

rule-c10 = the load client was not the bottleneck
    .why = A client that is late offers less load; one that is slow times itself.
    .reads = scheduled and sent instants of measured requests; calibration row `client` against a null server; without a KV engine, instants of the workers
    .threshold = send lag at most { $lag_share } of the TTFT p50 (the tolerance of a claim); median TTFT error at most { $error_share } (a fifth of it); without a KV engine: no worker behind the barrier by more than { $barrier_share } of the shortest load, and none before it; engines at one barrier: all of them load together for { $overlap_share } of the longest load
c10-no-ttft = no TTFT to compare with
    .otherwise = The measured phase has no finite TTFT p50.
c10-send-lag = largest send lag { $measured } <= { $limit } ({ $most_share } of the TTFT p50)
    .otherwise = The client could not send its burst in time: the offered load was lower.
c10-lag-unknown = send lag known for { $known } of { $requests } requests
    .otherwise = A request has no scheduled or no sent instant.
c10-not-calibrated = no null-server calibration of the client
    .otherwise = Run `load_client calibrate`.
c10-calibrated-requests = calibrated with { $measured } requests >= concurrency { $limit }
    .otherwise = The client was calibrated at a smaller load than it offered.
c10-own-error = { $quantity } { $measured } within { $low } to { $high } ({ $most_share } of the TTFT p50)
    .otherwise = The client's own error is too large beside what it timed, or was not calibrated.
c10-no-worker = no worker to time
    .otherwise = No worker finished the measured phase.
c10-instants-unknown = { $workers } workers without instants
    .otherwise = Their rows lack them.
c10-barrier-lag = largest lag behind the barrier { $measured } <= { $limit } ({ $most_share } of the shortest)
    .otherwise = The workers did not work at the same time: the load was less than planned.
c10-early = { $measured } of { $workers } workers began before the barrier
    .otherwise = The workers did not work at the same time: the load was less than planned.
c10-overlap = { $engines } engines loaded together for { $measured } >= { $limit } ({ $least_share } of the longest load)
    .otherwise = The engines did not load at the same time: each had the device to itself.

## C11

rule-c11 = the code the arm names was in force
    .why = A patch applied too late, to another tree, or loaded and inactive, changes nothing and is measured all the same.
    .reads = run.patch and event `patch_state`; R8-PATCH loaded and read lines of the engine
    .threshold = the module's SHA-256 exactly; bytes exactly the sessions' chunks; at least bytes/segment size segments; 0 misses. Unpatched: no R8-PATCH line and the base digest, or mode=serial
c11-no-patch-state = no patch state in run.json
    .otherwise = Nobody looked which LMCache file ran.
c11-no-patch-event = no `patch_state` event
    .otherwise = The file was not looked at before the start.
c11-state-repeated = patch state before the start: { $measured } of { $fields } fields differ from run.json ({ $changed })
    .otherwise = The tree changed between planning and start.
c11-no-module-digest = digest of the reader module not recorded
    .otherwise = run.json lacks it.
c11-target-patched = target { $target } differs from base { $base }
    .otherwise = The arm is called patched and ran on the base file.
c11-not-loaded = { $instance }: 0 R8-PATCH loaded lines of { $lines } lines that matter
    .otherwise = The running engine never loaded the patch: applied too late, or to another tree.
c11-module = { $instance }: engine says module { $found } = { $planned } planned
    .otherwise = The running engine holds another module.
c11-mode = { $instance }: engine says mode { $measured } = { $limit }
    .otherwise = The running engine holds the module inactive.
c11-nothing-read = { $instance }: { $measured } R8-PATCH read lines in the measured phase, { $expected_bytes } expected
    .otherwise = The patch is loaded and read nothing: another path serves the reads.
c11-read-bytes = { $instance }: patch read { $measured } = { $limit } expected
    .otherwise = The patch did not read exactly the measured sessions' chunks.
c11-misses = { $instance }: { $measured } misses
    .otherwise = The patch answered chunks as a miss: those were recomputed.
c11-no-segment-size = segment size not known
    .otherwise = The loaded line lacks it.
c11-segments = { $instance }: { $measured } segments >= { $read_bytes } / { $segment_bytes } = { $limit }
    .otherwise = Chunks were not split into segments: the reads were not parallel.
c11-patch-inactive = { $instance }: patch loaded, mode { $measured } = { $limit }
    .otherwise = The arm is called unpatched and the patch is active.
c11-no-patch-line = { $instance }: no R8-PATCH line among { $lines } lines that matter
    .otherwise = Without an engine log nobody knows whether a patch spoke.
c11-target-base = target { $target } = base { $base }
    .otherwise = The file is not the base file of its version and no serial mode is named.

## E1

rule-e1 = the engine did not fall back to recompute
    .why = An engine without its KV tier answers, is slow, and reports itself healthy.
    .reads = engine_log lines of kind fatal, each instance
    .threshold = none; an instance without any line is unknown
e1-sound = { $instance }: no fatal line among { $lines } lines that matter
e1-fatal = { $instance }: { $measured } fatal of { $lines } lines that matter, first in line { $first }: { $text }
    .otherwise = The engine runs without its KV tier while its health check stays green.
e1-not-judged = { $instance }: { $measured } warnings and errors of the engine not judged, first in line { $first }: { $text }
    .otherwise = These lines have no form that R8 knows; read them in raw/.

## E2

rule-e2 = log and counters of the engine agree, request by request
    .why = A line can be lost and a counter can be of another engine: two witnesses, one story.
    .reads = server_request_id of measured requests; lookup lines; counters { $external } and { $prefix } of each instance's /metrics
    .threshold = every response joined; counters exactly the sum of the lines, and 0; an engine as a loader: its log names the directory and, within { $error_gib } GiB, its size, and what it says its load took is not above what was seen by more than { $error_s } s (its rounding)
e2-joined = { $seen } of { $requests } responses joined to their lookup line by { $ids } ids
    .otherwise = A response's id is missing, or its engine's log does not know it.
e2-other-words = no lookup line for any of { $requests } responses with { $ids } ids
    .otherwise = LMCache wrote none, or in words this R8 does not read: the words of another LMCache.
e2-counters-not-read = { $instance }: cache counters of /metrics not read around the window
    .otherwise = The metrics page was not fetched, or the engine does not publish them.
e2-external-hits = { $instance }: counter of external hits grew by { $measured } = { $logged } tokens by its lookup lines, { $silent } requests without a line
    .otherwise = Log and counters of the same engine disagree about what was loaded, or a line is missing.
e2-prefix-hits = { $instance }: counter of prefix-cache hits grew by { $measured } = { $limit }
    .otherwise = The engine answered from its own prefix cache.
e2-no-engine-loads = no engine loads here
    .otherwise = The workers are no engines.
e2-no-load = no engine loaded
    .otherwise = The run holds no event `work` of phase measure.
e2-load-not-said = { $worker }: the engine's log does not say all of its load
    .otherwise = Its log lacks a line, or it did not load; see raw/.
e2-directory = { $worker }: engine loaded { $measured } = { $limit } it was given
    .otherwise = The engine loaded another model than the one whose bytes are counted.
e2-load-time = { $worker }: engine says { $measured } s <= { $seen_s } s seen and { $error_s } s
    .otherwise = The time that was seen is not that of its load.
e2-load-size = { $worker }: engine says { $measured } GiB, tensors have { $seen_gib } GiB
    .otherwise = The engine loaded something of another size.

## E3

rule-e3 = no KV load of the engine failed or timed out
    .why = A load without a buffer waits a minute, is given up, and the engine goes on: only its log says why a request was slow, or was computed after all.
    .reads = engine_log lines of kind trouble and alloc_failed, each instance, for as long as the engine lived
    .threshold = no line of trouble; between two loads or stores at most { $refusals_a_chunk } refused buffers a chunk of a session and rank (one is usual: a full tier refuses, evicts and grants; a log without any is unknown)
e3-no-failed-load = { $instance }: no failed or timed-out load in { $lines } lines that matter
e3-failed-load = { $instance }: { $measured } lines of failed or timed-out loads, first in line { $first }: { $text }
    .otherwise = A request waited in vain or computed what it should have loaded; is the DRAM tier smaller than what is loaded at once?
e3-refusals = { $instance }: at most { $measured } buffers refused in a row, from line { $line } on, <= { $limit } ({ $refusals_a_chunk } x { $chunks } chunks of a session)
    .otherwise = The engine waited for buffers of its DRAM tier.
e3-no-refusal = { $instance }: no refused buffer in the whole log
    .otherwise = A tier that flushing has filled refuses before it evicts: either it was never full, or the log, or the R8 that read it, leaves such lines out.

## Q1

rule-q1 = every planned request was answered in full
    .why = Dropping failures flatters every percentile.
    .reads = requests of phase measure: outcome, session, usage tokens; without a KV engine, the workers' rows
    .threshold = no failure, each planned session once, exact token counts; without a KV engine: each planned worker once, none failed, all bytes of the files less at most { $header_share } of headers
q1-failed = { $measured } of { $requests } requests failed ({ $failures })
    .otherwise = A run with a failed request is INVALID, not slow; see raw/ and the request's error.
q1-requests = { $measured } requests = { $limit } planned
    .otherwise = Each session is measured exactly once: a second read would not be cold.
q1-sessions = { $measured } sessions measured = { $limit } planned
    .otherwise = Each session is measured exactly once: a second read would not be cold.
q1-output-tokens = { $measured } of { $limit } answers of { $tokens } tokens
    .otherwise = The server's usage disagrees with what was asked for.
q1-prompt-tokens = { $measured } of { $limit } prompts of { $tokens } tokens
    .otherwise = The server's usage disagrees with what was asked for.
q1-no-worker = no row of a worker
    .otherwise = The run holds no event `work` of phase measure.
q1-workers-failed = { $measured } of { $workers } workers failed ({ $failures })
    .otherwise = A run with a worker that failed is INVALID, not slow; see raw/worker-*.log.
q1-worker-rows = { $measured } rows of workers = { $limit } planned
    .otherwise = Each worker works exactly once: a second read would not be cold.
q1-workers = workers { $measured } = { $limit } planned
    .otherwise = Other workers ran than were planned.
q1-moved = workers moved { $measured } = { $total_bytes } of files less at most { $header_share } of headers
    .otherwise = A worker did not move all of what lies in its files.

## Q2

rule-q2 = the run is whole and its phases are in order
    .why = A recovered or reordered run shows what happened, not what was planned.
    .reads = run.complete; events { $milestones }
    .threshold = every milestone, in order, measured exactly once
q2-complete = finalised by its own lab
q2-recovered = recovered from a journal
    .otherwise = A recovered run shows what was journalled and measures nothing.
q2-no-event = event { $event } is missing
    .otherwise = The run did not go through.
q2-measured-once = measured { $measured } times = { $limit }
    .otherwise = A cell measured again is no cold read: the first reading filled the cache.
q2-order = { $milestones } milestones in order: { $measured }
    .otherwise = Expected the order { $order }.

## Q3

rule-q3 = the host was the same at the end as at the begin
    .why = A governor, a link or a driver that changes in a run changes what it measures.
    .reads = event `environment` at begin and end: digests of its stable sections, changes
    .threshold = no section changed; load, memory in use and idle link speeds are no part of it
q3-no-sections = captures without sections
    .otherwise = The capture did not go through.
q3-unchanged = { $measured } of { $sections } sections changed, unavailable here: { $absent }
q3-changed = { $measured } of { $sections } sections changed, unavailable here: { $absent } ({ $changes })
    .otherwise = The host was not the same at the end: compare raw/environment-begin.json with raw/environment-end.json.

## G1

rule-g1 = no GPU memory of an earlier arm
    .why = KV that an earlier engine left in HBM is read from nowhere.
    .reads = event `environment` at begin: memory in use of every GPU; event engine_started
    .threshold = at most the larger of { $most_share } of a card and { $floor_bytes } (an idle card shows 0.3 GB)
g1-no-gpu = no GPU on the engine's host
    .otherwise = Without GPU memory nothing can be left in it.
g1-captured-before = captured before the engine was started: { $measured }
    .otherwise = After the start the engine's own memory would be taken for residue.
g1-memory = { $device }: { $measured } in use <= { $limit }
    .otherwise = An earlier process still holds memory of { $device }: its KV may be served again.
g1-memory-unknown = { $device }: memory in use not known
    .otherwise = Its driver or tool does not say.

## S1

rule-s1 = every engine read its own share
    .why = Engines on one device may serve each other, or one may starve: their sum is right and their rates are not.
    .reads = view instance_reads: requests, hit bytes by lookup lines, read_bytes of each instance's process tree; metric device_read_bytes
    .threshold = requests and hits exactly the share; process bytes from { $floor_share } of it to the larger of { $tolerance_share } and { $excess_bytes } above it; the sum within { $tolerance_share } of the device
s1-one-engine = no engines beside each other
    .otherwise = Rule C4 balances the one.
s1-requests = { $instance }: { $measured } requests = { $limit } planned
    .otherwise = The engines were not under the same load: their rates say nothing.
s1-hits-unknown = { $instance }: hit bytes not known
    .otherwise = See its log.
s1-process-unknown = { $instance }: process read_bytes not known
    .otherwise = See its process samples.
s1-hits = { $instance }: hit { $measured } = { $limit } planned
    .otherwise = This engine found other chunks than it stored.
s1-process = { $instance }: process read { $measured }, { $low } to { $high } allowed
    .otherwise = This engine read less than it hit, or what another one hit: it was served from a cache, or did the other's work.
s1-told-apart = { $engines } engines in { $trees } process trees
    .otherwise = engine.root_pid gives one process for several engines: their bytes cannot be told apart.
s1-sum = instances hit { $each } bytes = { $hit_bytes }, device read { $measured }, { $low } to { $high } allowed
    .otherwise = What the engines found together is not what their device read.
s1-sum-unknown = sum of the instances not known
    .otherwise = An instance or the device is silent.

## W1

w-no-checkpoint = no checkpoint is written
    .otherwise = The run writes none.
rule-w1 = every byte was on the device when the save ended
    .why = A save timed without its flush measures memory, and is lost with the power.
    .reads = view work, phase measure (synced files and directories, commit, instants); disk `write_sectors` and `flushes` from the first rank's begin to the last one's end and to drop_begin; event `write_cache`
    .threshold = all files and a directory a rank flushed, one commit; device bytes at least the files' and at most { $tolerance_share } and { $metadata_bytes } above (a file system's log); one flush where a device holds writes back; at most { $late_bytes } between the save and the drop
w1-no-rank = no rank wrote
    .otherwise = The run holds no event `work` of phase measure.
w1-not-saved = { $measured } of { $ranks } ranks did not save ({ $failures })
    .otherwise = A checkpoint that lacks a rank's part is none; see raw/worker-*.log.
w1-files-flushed = { $measured } of { $files } files not flushed
    .otherwise = The time ended before the device was asked to hold the bytes: it measures memory.
w1-directories-flushed = { $measured } of { $ranks } ranks without a flushed directory
    .otherwise = The time ended before the device was asked to hold the bytes: it measures memory.
w1-committed = committed by { $measured } ranks = { $limit } ({ $workers })
    .otherwise = The time must end with one rank's commit, after all others flushed.
w1-writes-unknown = { $device }: no write counter around the save
    .otherwise = The disk probe is silent.
w1-bytes-in-window = { $device } wrote { $measured } in the window of { $window_ns }, files have { $low }, at most { $high } allowed
    .otherwise = { $side ->
        [below] Bytes were still in memory when the time ended.
       *[other] The device wrote more than the checkpoint: something else writes to it.
    }
w1-write-cache-unknown = write cache of the device not known
    .otherwise = Its queue does not say.
w1-nothing-held = no device below holds writes back
w1-flushed = flushes of devices that hold writes back: { $devices }
    .otherwise = A device that holds writes back was never told to flush, or nobody counted: its bytes would be lost with its power.
w1-no-drop = no drop after the save
    .otherwise = Event drop_begin is missing.
w1-late-writes = { $device } wrote { $measured } between the save and the drop, { $low } to { $high } allowed
    .otherwise = What came late should have been inside the timed window.

## W2

rule-w2 = the checkpoint reads back
    .why = What cannot be read back is no checkpoint, however fast it was written.
    .reads = view work, phases prepare and readback (SHA-256 a rank); disk `read_sectors` over the readback; rule C3 is about the drop before it
    .threshold = every rank's hash; device bytes at least { $floor_share } of the files
w2-no-hash = no hash of what was saved
    .otherwise = The run holds no row of phase prepare.
w2-nothing-read-back = { $measured } parts read back
    .otherwise = There is no checkpoint to read back: what was written is none.
w2-parts-same = { $measured } of { $limit } parts have the SHA-256 they were saved by ({ $failures })
    .otherwise = What was read is not what was written, or could not be read.
w2-bytes-unknown = bytes of the readback not known
    .otherwise = The disk probe or a rank is silent.
w2-from-the-device = { $device } read { $read_bytes } / files have { $moved_bytes } = { $measured } >= { $limit }
    .otherwise = The page cache answered: that the device holds it was not shown.

## W3

rule-w3 = no other checkpoint was touched
    .why = A save that fails must leave the last good one, and nothing that looks like one.
    .reads = event `checkpoints` (names in the directory); view work, phases earlier and readback_earlier (SHA-256 a rank)
    .threshold = exactly the earlier and, when every rank saved, the measured checkpoint; every hash of the earlier one
w3-names-unknown = names in the directory not known
    .otherwise = Nobody looked after the save.
w3-names = directory holds { $measured } = { $limit }
    .otherwise = A checkpoint bears its name though it is not whole, or one is gone.
w3-half-way = directory holds { $measured } = { $limit }
    .otherwise = Left half-way: { $half }.
w3-earlier-not-read = the earlier checkpoint was not read
    .otherwise = There is no row of it.
w3-parts-same = { $measured } of { $limit } parts of the earlier checkpoint have their SHA-256 ({ $failures })
    .otherwise = What was read is not what was written, or could not be read.

## N1 and N2

n-own-sessions = { $requests } requests of the control, { $shared } of sessions a cell uses
    .otherwise = A control on a cell's own sessions shows what that cell left behind.
rule-n1 = a warm read is refused by C3 and C4
    .why = A certificate that cannot say no says nothing.
    .reads = control `warm_read`, once a block, on a session of its own stored first and read last: retrieved tokens, its own drop, residency after its files were read in, disk `read_sectors` and the processes' `rchar` over it
    .threshold = C3's own number fails (files above { $most_share } resident) and C4's own (device bytes below { $floor_share } of the hits), with the drop done and the files read by the engine. Unknown where its files were not in the page cache after all, or the arm reads with O_DIRECT. One run of a block that shows it speaks for the block. Without a KV engine: the same loads again
n1-no-warm-read = no warm read in this run
    .otherwise = The block's controls are in the run of its last cell that reads KV.
n1-past-the-page-cache = this arm reads with O_DIRECT, past the page cache
    .otherwise = Its warm reads do reach the device; another arm of the block is the control.
n1-nothing-hit = the warm read hit nothing
    .otherwise = A control that loads no KV shows nothing.
n1-drop = drop before the control returned { $rc }
    .otherwise = Without a drop of its own the control would be refused for that, not by bytes.
n1-rchar-unknown = rchar around the warm read not known
    .otherwise = The process probe is silent.
n1-through-the-page-cache = the engine's processes read { $file_bytes } of files >= { $limit } of { $hit_bytes } hit
    .otherwise = The hits came from a tier in DRAM: it was not flushed before the control.
n1-residency-unknown = residency before the warm read not known
    .otherwise = Residency of the files was not measured.
n1-files-not-cached = files known to be cached were not seen so
    .otherwise = The device gave them, or no device counter says more: nothing is shown.
n1-c3 = C3 sees { $measured } files above { $most_share } resident
    .otherwise = Files that were read from the page cache were not seen in it: C3 is blind.
n1-adds-up = page cache { $cached_bytes } + device { $device_bytes } = { $measured } >= { $limit } of { $wanted_bytes }
    .otherwise = Page cache and device together gave fewer bytes than were read.
n1-device-unknown = no read counter around the warm read
    .otherwise = The disk probe is silent around the warm read.
n1-c4 = C4 sees { $device } read { $read_bytes } / engine hit { $hit_bytes } = { $measured } < { $limit }
    .otherwise = A read known to be warm balances like a cold one: C4 proves nothing here.
n1-not-warm = { $device } read { $read_bytes } of { $hit_bytes } hit: the read was not warm
    .otherwise = The page cache did not hold what was read into it.
n1-window-writes = the window writes
    .otherwise = C4 has no subject that could be warm.
n1-no-warm-load = no warm load in this run
    .otherwise = Another run of the block may hold it.
n1-nothing-loaded = the warm load moved nothing
    .otherwise = A control that loads nothing says nothing.
n1-c4-load = C4 sees { $device } read { $read_bytes } / warm load { $moved_bytes } = { $measured } < { $limit }
    .otherwise = A load known to be warm balances like a cold one: C4 proves nothing here.
rule-n2 = a random prompt hits nothing
    .why = If a prompt nobody stored is found in the cache, hits prove nothing.
    .reads = control `random_prompt`, once a block, of a session nobody stored: hit tokens of its lookup line
    .threshold = 0 tokens. One run of a block that shows it speaks for the block
n2-no-random-prompt = no random prompt in this run
    .otherwise = The block's controls are in the run of its last cell that reads KV.
n2-no-lookup = { $seen } of { $requests } random prompts with a lookup line
    .otherwise = The engine log does not say what they hit.
n2-hit-tokens = { $requests } random prompts, most hit tokens { $measured } = { $limit }
    .otherwise = A prompt nobody populated was found in the cache: hits prove nothing here.

## What `r8 explain` says beside a rule's own words

explain-of-run = It must hold in every run a verdict rests on.
explain-of-block = One run of a block that holds it speaks for the block; one that refutes it speaks against it.
explain-answers = held; refuted (by number); unknown (evidence is missing), which is INVALID for every claim, never a pass; not applicable, where the run's own plan gives the rule no subject, with the reason in words.
explain-why = Why
explain-reads = Reads
explain-threshold = Threshold
explain-scope = Scope
explain-answers-are = Answers
