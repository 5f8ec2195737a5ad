-- Every metric of R8, defined once, over the tables of tables.sql.
--
-- Rules for all of them
--   * Durations are differences of instants of one monotonic clock, in ns; sizes are bytes. Nothing
--     is rounded; sums are sums of integers, so the order of rows cannot change a digit.
--   * A failed request stays a row: its latency is +infinity, and every percentile sees it.
--   * A percentile is the inverted CDF (quantile_disc): the smallest observed value that at least
--     the share q of the values does not exceed; pooled over instances. It is refused when
--     n < 1 / (1 - q): below that it would be the maximum under another name. So p90 needs 10
--     values, p99 needs 100; the median needs one. The maximum is called max.
--   * A value that cannot be had is NULL with its reason, never 0.
--   * Phases: `measure` is the cold burst, `warm` the same sessions again from the page cache.
--   * What several others are made from is a TABLE, computed once while this file is read (a session
--     of days would be read from its files a dozen times otherwise); the rest are views. After
--     choosing other runs, read both files again.

-- ---------------------------------------------------------------- phases
-- One row an occurrence of a phase: its marks, of the pair <phase>_begin and <phase>_end.
CREATE OR REPLACE TABLE phases AS
WITH marks AS (
    SELECT run_id,
           regexp_extract(name, '^(.+)_(begin|end)$', 1) AS phase,
           regexp_extract(name, '^(.+)_(begin|end)$', 2) AS edge,
           mono_ns, detail,
           row_number() OVER (PARTITION BY run_id, name ORDER BY mono_ns) AS occurrence
    FROM events
    WHERE regexp_matches(name, '^.+_(begin|end)$')
)
SELECT run_id, phase, occurrence,
       max(mono_ns) FILTER (edge = 'begin') AS begin_ns,
       max(mono_ns) FILTER (edge = 'end') AS end_ns,
       max(detail) FILTER (edge = 'begin') AS detail
FROM marks
GROUP BY run_id, phase, occurrence;

-- ---------------------------------------------------------------- one request
-- One row a request; durations in ns, NULL where the request did not get so far or failed.
--   ttft_ns      first content (non-empty, reasoning included) - first request byte sent.
--                Cannot show: what the time went to (queue, lookup, load, prefill).
--   tpot_ns      (last content - first content) / (output tokens - 1), tokens by the server's
--                usage; needs 2 output tokens. Cannot show: single stalls.
--   e2e_ns       last content - first request byte sent; the usage record and the end mark of the
--                stream come after it and are not waited for.
--   send_lag_ns  sent - scheduled: how late the client was.
CREATE OR REPLACE VIEW request_times AS
SELECT run_id, phase, request_id, instance, session, outcome, error,
       outcome = 'ok' AS ok, output_tokens, sent_ns, last_content_ns,
       CASE WHEN outcome = 'ok' THEN first_content_ns - sent_ns END AS ttft_ns,
       CASE WHEN outcome = 'ok' AND output_tokens >= 2
            THEN (last_content_ns - first_content_ns) / (output_tokens - 1) END AS tpot_ns,
       CASE WHEN outcome = 'ok' THEN last_content_ns - sent_ns END AS e2e_ns,
       first_byte_ns - sent_ns AS first_byte_after_ns,
       first_answer_ns - sent_ns AS first_answer_after_ns,
       sent_ns - scheduled_ns AS send_lag_ns
FROM requests;

-- TTFT of every request beside the cell it belongs to.
CREATE OR REPLACE VIEW ttft AS
SELECT r.campaign_id, r.scenario, r.arm, r.level, r.block, t.run_id, t.phase, t.request_id,
       t.instance, t.session, t.outcome, t.ttft_ns, t.first_byte_after_ns,
       t.first_answer_after_ns, t.send_lag_ns
FROM request_times t JOIN runs r USING (run_id);

-- Gaps between consecutive content events of one response, ns: inter-token latency where the
-- server sends one token an event. Cannot show: tokens that arrived together in one event.
CREATE OR REPLACE VIEW content_gaps AS
SELECT c.run_id, q.phase, c.request_id, c.seq,
       c.arrival_ns - lag(c.arrival_ns)
           OVER (PARTITION BY q.phase, q.request_no ORDER BY c.seq) AS gap_ns
FROM chunks c
-- A number instead of two names: millions of chunks are sorted by it. The phase beside it lets a
-- question about one phase sort the chunks of that phase alone.
JOIN (SELECT run_id, request_id, phase, row_number() OVER () AS request_no FROM requests) q
    USING (run_id, request_id)
WHERE c.kind IN ('content', 'reasoning');

-- What percentiles are taken of. A failed request gives +infinity (0 for a speed), and one
-- infinite gap beside the gaps it had; a row that is ok but lacks an instant gives NULL, which
-- makes the statistic NULL.
CREATE OR REPLACE VIEW samples AS
SELECT run_id, phase, 'ttft' AS metric,
       CASE WHEN ok THEN CAST(ttft_ns AS DOUBLE) ELSE CAST('inf' AS DOUBLE) END AS value
FROM request_times
UNION ALL
SELECT run_id, phase, 'tpot', CASE WHEN ok THEN tpot_ns ELSE CAST('inf' AS DOUBLE) END
FROM request_times
UNION ALL
SELECT run_id, phase, 'e2e',
       CASE WHEN ok THEN CAST(e2e_ns AS DOUBLE) ELSE CAST('inf' AS DOUBLE) END
FROM request_times
UNION ALL
SELECT run_id, phase, 'itl', CAST(gap_ns AS DOUBLE) FROM content_gaps WHERE gap_ns IS NOT NULL
UNION ALL
SELECT run_id, phase, 'itl', CAST('inf' AS DOUBLE) FROM request_times WHERE NOT ok
UNION ALL
SELECT run_id, phase, 'output_tokens_per_s',
       CASE WHEN NOT ok THEN 0.0 WHEN tpot_ns > 0 THEN 1e9 / tpot_ns END
FROM request_times;

-- ---------------------------------------------------------------- one phase of requests
-- Percentiles and maxima of `samples`: ttft, tpot, itl, e2e in ns, and output_tokens_per_s, the
-- speed one reader sees: 1 / TPOT of the request. n is the number of values, failures included.
-- Cannot show: that the requests of one burst share a queue; they are no independent samples.
CREATE OR REPLACE TABLE request_statistics AS
WITH wanted(metric, statistic, min_n, unit) AS (
    VALUES ('ttft', 'p50', 1, 'ns'), ('ttft', 'p90', 10, 'ns'), ('ttft', 'p99', 100, 'ns'),
           ('ttft', 'max', 1, 'ns'), ('tpot', 'p50', 1, 'ns'), ('itl', 'p50', 1, 'ns'),
           ('e2e', 'p50', 1, 'ns'), ('e2e', 'max', 1, 'ns'),
           ('output_tokens_per_s', 'p50', 1, 'tokens/s')
),
pooled AS (
    SELECT run_id, phase, metric, count(*) AS n, count(*) - count(value) AS undefined,
           quantile_disc(value, [0.5, 0.9, 0.99]) AS p, max(value) AS maximum
    FROM samples WHERE phase IN ('measure', 'warm') GROUP BY run_id, phase, metric
)
SELECT r.run_id, w.phase, v.metric, v.statistic, v.unit, coalesce(p.n, 0) AS n,
       CASE WHEN coalesce(p.n, 0) = 0 THEN 'no values in this phase'
            WHEN p.undefined > 0 THEN p.undefined || ' of ' || p.n || ' values are undefined'
            WHEN p.n < v.min_n
            THEN v.statistic || ' needs n >= ' || v.min_n || ', there are ' || p.n END AS reason,
       CASE WHEN reason IS NULL THEN
            CASE v.statistic WHEN 'p50' THEN p.p[1] WHEN 'p90' THEN p.p[2] WHEN 'p99' THEN p.p[3]
                             ELSE maximum END END AS value,
       CASE v.statistic WHEN 'max' THEN 'maximum' ELSE 'inverted CDF' END AS estimator
FROM runs r CROSS JOIN (VALUES ('measure'), ('warm')) w(phase) CROSS JOIN wanted v
LEFT JOIN pooled p ON p.run_id = r.run_id AND p.phase = w.phase AND p.metric = v.metric;

-- Rates and counts of a phase.
--   output_throughput  sum of usage output tokens of ok requests / (last content - first sent),
--                      tokens/s on the client's clock; n is the ok requests. Cannot show: time
--                      after the last content, such as a request that hung; n_failed shows that.
--   goodput            ok requests within both limits / the same time, requests/s. The limits
--                      are stated beforehand: SET VARIABLE r8_ttft_limit_ns, r8_tpot_limit_ns.
--   n_requests, n_failed
CREATE OR REPLACE VIEW phase_rates AS
WITH sums AS (
    SELECT run_id, phase, count(*) AS n, count(*) FILTER (ok) AS n_ok,
           count(*) FILTER (NOT ok) AS n_failed,
           sum(output_tokens) FILTER (ok) AS tokens,
           count(*) FILTER (ok AND output_tokens IS NULL) AS n_uncounted,
           (max(last_content_ns) - min(sent_ns)) / 1e9 AS span_s,
           count(*) FILTER (ok AND ttft_ns <= CAST(getvariable('r8_ttft_limit_ns') AS DOUBLE)
                            AND tpot_ns <= CAST(getvariable('r8_tpot_limit_ns') AS DOUBLE)) AS n_good,
           getvariable('r8_ttft_limit_ns') IS NULL
               OR getvariable('r8_tpot_limit_ns') IS NULL AS no_limits
    FROM request_times GROUP BY run_id, phase
),
cells AS (
    SELECT r.run_id, w.phase, coalesce(s.n, 0) AS n, coalesce(s.n_ok, 0) AS n_ok,
           coalesce(s.n_failed, 0) AS n_failed, s.* EXCLUDE (run_id, phase, n, n_ok, n_failed)
    FROM runs r CROSS JOIN (VALUES ('measure'), ('warm')) w(phase)
    LEFT JOIN sums s ON s.run_id = r.run_id AND s.phase = w.phase
)
SELECT run_id, phase, 'output_throughput' AS metric, '' AS statistic, 'tokens/s' AS unit,
       n_ok AS n,
       CASE WHEN n_uncounted = 0 AND span_s > 0 THEN tokens / span_s END AS value,
       'usage tokens / (last content - first sent)' AS estimator,
       CASE WHEN n = 0 THEN 'no requests in this phase'
            WHEN n_ok = 0 THEN 'no request finished'
            WHEN n_uncounted > 0 THEN n_uncounted || ' requests without a token count'
            WHEN span_s IS NULL OR span_s <= 0 THEN 'no time passed' END AS reason
FROM cells
UNION ALL
SELECT run_id, phase, 'goodput', '', 'requests/s', n_ok,
       CASE WHEN NOT no_limits AND span_s > 0 THEN n_good / span_s END,
       'requests within limits / (last content - first sent)',
       CASE WHEN n = 0 THEN 'no requests in this phase'
            WHEN no_limits THEN 'no limits stated'
            WHEN span_s IS NULL OR span_s <= 0 THEN 'no request finished' END
FROM cells
UNION ALL
SELECT run_id, phase, 'n_requests', '', 'requests', n, CAST(n AS DOUBLE), 'count', NULL FROM cells
UNION ALL
SELECT run_id, phase, 'n_failed', '', 'requests', n, CAST(n_failed AS DOUBLE), 'count', NULL
FROM cells;

-- ---------------------------------------------------------------- block devices and processes
-- One row a device and sample: bytes since the sample before (512-byte units of the kernel) and
-- their rate. A regressed counter or a replaced device starts a new epoch and is never bridged.
CREATE OR REPLACE VIEW device_series AS
WITH wide AS (
    SELECT run_id, host, device, mono_ns, max(epoch) AS epoch,
           max(value) FILTER (counter = 'read_sectors') AS read_sectors,
           max(value) FILTER (counter = 'write_sectors') AS write_sectors
    FROM probes
    WHERE probe = 'disk' AND counter IN ('read_sectors', 'write_sectors')
    GROUP BY run_id, host, device, mono_ns
),
steps AS (
    SELECT run_id, host, device, epoch, mono_ns AS end_ns,
           lag(mono_ns) OVER s AS begin_ns,
           512 * (read_sectors - lag(read_sectors) OVER s) AS read_bytes,
           512 * (write_sectors - lag(write_sectors) OVER s) AS write_bytes
    FROM wide
    WINDOW s AS (PARTITION BY run_id, host, device, epoch ORDER BY mono_ns)
)
SELECT *, read_bytes / ((end_ns - begin_ns) / 1e9) AS read_bytes_per_s,
       write_bytes / ((end_ns - begin_ns) / 1e9) AS write_bytes_per_s
FROM steps
WHERE begin_ns IS NOT NULL;

-- Bytes read in every phase by every block device and every engine process: the first sample at or
-- after the phase's end less the last sample at or before its begin. A process that starts inside
-- the phase counts from 0. One that ends inside it has no last reading: where it was waited for by a
-- process that is watched too (its row `exited`, or a worker that adopts orphans), the kernel has
-- added all it ever read to that one, and its own row takes away what it had read before the phase,
-- so that sums over a tree hold; else it is refused.
-- Cannot show: what a process read through mmap of another file system's cache, or network reads.
CREATE OR REPLACE TABLE phase_reads AS
WITH adopters AS (
    SELECT run_id, json_extract_string(detail, '$.worker') AS worker,
           bool_and(coalesce(json_extract_string(detail, '$.reaps_orphans'), '') = 'true') AS adopts
    FROM events WHERE name = 'worker_started' AND json_valid(detail) GROUP BY ALL
),
readings AS (
    SELECT run_id, probe, host, device, mono_ns, coalesce(epoch, 0) AS epoch,
           512 * value AS total_bytes
    FROM probes WHERE value IS NOT NULL AND probe = 'disk' AND counter = 'read_sectors'
    UNION ALL
    SELECT run_id, probe, host, device, mono_ns, coalesce(epoch, 0), value
    FROM probes WHERE value IS NOT NULL AND probe = 'process' AND counter = 'read_bytes'
),
windows AS (
    SELECT run_id, phase, occurrence, begin_ns, end_ns
    FROM phases WHERE begin_ns IS NOT NULL AND end_ns IS NOT NULL
),
-- Readings are folded into pieces that no begin or end of a phase divides: minutes, and those with
-- such a mark in them are cut there. A phase then looks at pieces, not at millions of readings.
cuts AS (
    SELECT run_id, mark_ns // 60000000000 AS minute, list(DISTINCT mark_ns) AS marks
    FROM (SELECT run_id, unnest([begin_ns, end_ns]) AS mark_ns FROM windows)
    GROUP BY run_id, minute
),
pieces AS (
    SELECT x.run_id, x.probe, x.host, x.device, x.mono_ns // 60000000000 AS minute,
           CASE WHEN c.marks IS NOT NULL
                THEN len(list_filter(c.marks, lambda mark: mark < x.mono_ns))
                     + len(list_filter(c.marks, lambda mark: mark <= x.mono_ns)) END AS piece,
           count(*) AS n, min(x.mono_ns) AS first_ns, max(x.mono_ns) AS last_ns,
           arg_min(x.total_bytes, x.mono_ns) AS first_bytes,
           arg_max(x.total_bytes, x.mono_ns) AS last_bytes,
           arg_min(x.epoch, x.mono_ns) AS first_epoch, arg_max(x.epoch, x.mono_ns) AS last_epoch
    FROM readings x
    LEFT JOIN cuts c ON c.run_id = x.run_id AND c.minute = x.mono_ns // 60000000000
    GROUP BY ALL
),
exits AS (
    SELECT x.run_id, x.host, x.device, bool_or(
               x.text LIKE 'folded:%' OR x.text = 'lost:its parent is not in the tree'
               AND coalesce(a.adopts, false)) AS folded
    FROM probes x LEFT JOIN adopters a
        ON a.run_id = x.run_id AND starts_with(x.device, a.worker || ':')
    WHERE x.probe = 'process' AND x.counter = 'exited'
    GROUP BY ALL
),
edges AS (
    SELECT p.run_id, p.phase, p.occurrence, x.probe, x.host, x.device, p.begin_ns, p.end_ns,
           max(x.last_ns) FILTER (x.last_ns <= p.begin_ns) AS before_ns,
           arg_max(x.last_bytes, x.last_ns) FILTER (x.last_ns <= p.begin_ns) AS before_bytes,
           arg_max(x.last_epoch, x.last_ns) FILTER (x.last_ns <= p.begin_ns) AS before_epoch,
           min(x.first_ns) FILTER (x.first_ns >= p.end_ns) AS after_ns,
           arg_min(x.first_bytes, x.first_ns) FILTER (x.first_ns >= p.end_ns) AS after_bytes,
           arg_min(x.first_epoch, x.first_ns) FILTER (x.first_ns >= p.end_ns) AS after_epoch,
           min(x.first_ns) AS first_ns, max(x.last_ns) AS last_ns,
           CAST(coalesce(sum(x.n) FILTER (x.first_ns > p.begin_ns AND x.last_ns < p.end_ns), 0)
                AS BIGINT) AS n_inside
    FROM windows p JOIN pieces x USING (run_id)
    GROUP BY ALL
),
judged AS (
    SELECT e.*, probe = 'process' AND first_ns > begin_ns AND first_ns <= end_ns AS born_inside,
        after_ns IS NULL AND probe = 'process' AND coalesce(x.folded, false) AS folded,
        CASE WHEN folded THEN NULL
             WHEN after_ns IS NULL AND probe = 'process' THEN 'process ended inside the phase'
             WHEN after_ns IS NULL THEN 'no sample at or after the end of the phase'
             WHEN before_ns IS NULL AND NOT born_inside
             THEN 'no sample at or before the begin of the phase'
             WHEN before_epoch <> after_epoch OR after_bytes < before_bytes
             THEN 'counter regressed or device replaced' END AS reason
    FROM edges e LEFT JOIN exits x USING (run_id, host, device)
    -- Processes that ended before the phase, or were born after it, had no part in it.
    WHERE NOT (probe = 'process' AND (last_ns < begin_ns OR first_ns > end_ns))
)
SELECT run_id, phase, occurrence, probe, host, device, before_ns, after_ns,
       n_inside + CAST(before_ns IS NOT NULL AS BIGINT) + CAST(after_ns IS NOT NULL AS BIGINT) AS n,
       CASE WHEN reason IS NULL
            THEN CASE WHEN folded THEN 0 ELSE after_bytes END - coalesce(before_bytes, 0)
       END AS read_bytes,
       reason
FROM judged;

-- What the run's KV device did in a phase; one row a run and phase of `measure` and `warm`.
-- Several hosts that have a device of this name, or several occurrences, are refused.
CREATE OR REPLACE TABLE kv_device_reads AS
WITH found AS (
    SELECT r.run_id, w.phase, count(d.device) AS hits, any_value(d.host) AS host,
           any_value(d.before_ns) AS before_ns, any_value(d.after_ns) AS after_ns,
           any_value(d.n) AS n, any_value(d.read_bytes) AS read_bytes,
           any_value(d.reason) AS reason
    FROM runs r CROSS JOIN (VALUES ('measure'), ('warm')) w(phase)
    LEFT JOIN phase_reads d ON d.run_id = r.run_id AND d.phase = w.phase AND d.probe = 'disk'
                           AND d.device = r.kv_device
    GROUP BY r.run_id, w.phase
)
SELECT run_id, phase, host, before_ns, after_ns, coalesce(n, 0) AS n,
       CASE WHEN hits = 1 THEN read_bytes END AS read_bytes,
       CASE WHEN hits = 0 THEN 'the KV device has no samples around this phase'
            WHEN hits > 1 THEN 'the phase or the device is there ' || hits || ' times'
            ELSE reason END AS reason
FROM found;

-- ---------------------------------------------------------------- calibration
-- What the device gives by itself, bytes/s, measured in the same run.
--   ceiling_bandwidth  the best of the `ceiling` rows (each bytes / elapsed)
--   serial_bandwidth   all bytes / all time of the `serial` rows
-- Rows of more than one device are refused.
CREATE OR REPLACE TABLE calibrated AS
WITH speeds AS (
    SELECT run_id, name, count(*) AS n, count(DISTINCT device) AS devices,
           max(read_bytes / (elapsed_ns / 1e9)) AS best,
           sum(read_bytes) / (sum(elapsed_ns) / 1e9) AS pooled
    FROM calibration
    WHERE name IN ('ceiling', 'serial') AND read_bytes > 0 AND elapsed_ns > 0
    GROUP BY run_id, name
)
SELECT r.run_id, w.name, coalesce(s.n, 0) AS n,
       CASE WHEN s.devices = 1
            THEN CASE w.name WHEN 'ceiling' THEN s.best ELSE s.pooled END END AS bytes_per_s,
       CASE WHEN s.n IS NULL THEN 'no ' || w.name || ' calibration in this run'
            WHEN s.devices > 1 THEN 'calibration of ' || s.devices || ' devices' END AS reason
FROM runs r CROSS JOIN (VALUES ('ceiling'), ('serial')) w(name)
LEFT JOIN speeds s ON s.run_id = r.run_id AND s.name = w.name;

-- ---------------------------------------------------------------- device metrics
--   device_read_bytes            of the KV device, as phase_reads. Cannot show: who read them.
--   device_read_bandwidth mean   bytes / (end of the last - begin of the first sample interval
--                                with reads). Cannot show: pauses inside; compare busy.
--   device_read_bandwidth busy   bytes / time of the 1 s windows that read more than 5 % of the
--                                ceiling (5 %: stray metadata reads stay out, a tail stays in).
--   device_read_bandwidth peak_1s  the fastest window that lasts at least 0.9 s (a shorter rest of
--                                a second would be a rate of its own).
--   ceiling_fraction             bandwidth / ceiling_bandwidth, no unit.
-- A window holds whole sample intervals, counted from the sample before the phase: nothing is
-- interpolated.
CREATE OR REPLACE TABLE bandwidth AS
WITH kv AS MATERIALIZED (
    SELECT k.run_id, k.host, r.kv_device, k.before_ns, k.after_ns, k.reason,
           row_number() OVER () AS cell
    FROM kv_device_reads k JOIN runs r USING (run_id) WHERE k.phase = 'measure'
),
ceiling AS MATERIALIZED (
    SELECT run_id, bytes_per_s, reason FROM calibrated WHERE name = 'ceiling'
),
-- As in device_series, of the samples in the window alone.
samples AS (
    SELECT k.cell, k.before_ns, p.mono_ns, p.epoch, p.value
    FROM kv k
    JOIN probes p ON p.run_id = k.run_id AND p.host = k.host AND p.device = k.kv_device
                 AND p.mono_ns BETWEEN k.before_ns AND k.after_ns
    WHERE k.reason IS NULL AND p.probe = 'disk' AND p.counter = 'read_sectors'
),
steps AS (
    SELECT cell, before_ns, mono_ns AS end_ns, lag(mono_ns) OVER s AS begin_ns,
           512 * (value - lag(value) OVER s) AS read_bytes
    FROM samples
    WINDOW s AS (PARTITION BY cell, epoch ORDER BY mono_ns)
    QUALIFY begin_ns IS NOT NULL
),
windows AS MATERIALIZED (
    SELECT k.run_id, w.* EXCLUDE (cell)
    FROM (SELECT cell, (end_ns - before_ns - 1) // 1000000000 AS second_no, count(*) AS n,
                 sum(read_bytes) AS read_bytes, sum(end_ns - begin_ns) AS elapsed_ns,
                 min(begin_ns) FILTER (read_bytes > 0) AS first_ns,
                 max(end_ns) FILTER (read_bytes > 0) AS last_ns
          FROM steps GROUP BY cell, second_no) w
    JOIN kv k USING (cell)
),
reading AS (
    SELECT run_id, sum(read_bytes) AS read_bytes, CAST(sum(n) AS BIGINT) AS n,
           max(last_ns) - min(first_ns) AS elapsed_ns
    FROM windows GROUP BY run_id
),
seconds AS (
    SELECT w.run_id,
           sum(w.read_bytes) FILTER (busy) AS busy_bytes,
           sum(w.elapsed_ns) FILTER (busy) AS busy_ns,
           count(*) FILTER (busy) AS n_busy,
           max(w.read_bytes / (w.elapsed_ns / 1e9)) FILTER (w.elapsed_ns >= 900000000) AS peak,
           count(*) FILTER (w.elapsed_ns >= 900000000) AS n_whole
    FROM (SELECT w.*, w.read_bytes / (w.elapsed_ns / 1e9) > 0.05 * c.bytes_per_s AS busy
          FROM windows w JOIN ceiling c USING (run_id)) w
    GROUP BY w.run_id
),
speeds AS MATERIALIZED (
    SELECT k.run_id, w.statistic, c.bytes_per_s AS ceiling, c.reason AS no_ceiling,
           CASE w.statistic WHEN 'mean' THEN coalesce(g.n, 0)
                            WHEN 'busy' THEN coalesce(v.n_busy, 0)
                            ELSE coalesce(v.n_whole, 0) END AS n,
           CASE w.statistic WHEN 'mean' THEN g.read_bytes / (g.elapsed_ns / 1e9)
                            WHEN 'busy' THEN v.busy_bytes / (v.busy_ns / 1e9)
                            ELSE v.peak END AS bytes_per_s,
           w.estimator,
           CASE WHEN k.reason IS NOT NULL THEN k.reason
                WHEN w.statistic = 'busy' AND c.reason IS NOT NULL THEN c.reason
                WHEN w.statistic = 'mean' AND g.elapsed_ns IS NULL THEN 'the device read nothing'
                WHEN w.statistic = 'busy' AND v.busy_ns IS NULL
                THEN 'no window above 5 % of the ceiling'
                WHEN w.statistic = 'peak_1s' AND v.peak IS NULL
                THEN 'no window of a whole second' END AS reason
    FROM kv k JOIN ceiling c USING (run_id)
    CROSS JOIN (VALUES ('mean', 'bytes / reading window'),
                       ('busy', 'bytes / time of 1 s windows above 5 % of the ceiling'),
                       ('peak_1s', 'maximum of 1 s windows')) w(statistic, estimator)
    LEFT JOIN reading g ON g.run_id = k.run_id
    LEFT JOIN seconds v ON v.run_id = k.run_id
)
SELECT run_id, 'device_read_bandwidth' AS metric, statistic, 'bytes/s' AS unit, n,
       CASE WHEN reason IS NULL THEN bytes_per_s END AS value, estimator, reason
FROM speeds
UNION ALL
SELECT run_id, 'ceiling_fraction', statistic, '', n,
       CASE WHEN reason IS NULL THEN bytes_per_s / ceiling END,
       estimator || ' / ceiling', coalesce(reason, no_ceiling)
FROM speeds WHERE statistic IN ('mean', 'busy');

-- ---------------------------------------------------------------- the engine's own words
-- Lines of the engine log that name a request, with the request and its phase. The response's id
-- is the beginning of the engine's: vLLM adds the number of the prompt and random characters
-- (response `cmpl-X`, engine `cmpl-X-0-a1b2c3d4`), so the join is by prefix up to a hyphen.
CREATE OR REPLACE TABLE log_requests AS
-- As many parts of the engine's id as responses have, so that equal values are joined: comparing
-- each line with each request takes the square of a session's requests.
WITH depths AS (
    SELECT DISTINCT len(string_split(server_request_id, '-')) AS depth
    FROM requests WHERE server_request_id IS NOT NULL
),
named AS (
    SELECT *, string_split(server_request_id, '-') AS parts
    FROM engine_log WHERE server_request_id IS NOT NULL
),
beginnings AS MATERIALIZED (
    SELECT e.*, array_to_string(e.parts[1:d.depth], '-') AS beginning
    FROM named e JOIN depths d ON d.depth <= len(e.parts)
)
SELECT e.run_id, e.instance, e.line, e.kind, q.request_id, q.phase, e.computed_tokens,
       e.hit_tokens, e.need_tokens, e.retrieved_tokens, e.required_tokens, e.stored_tokens
FROM beginnings e
JOIN requests q ON q.run_id = e.run_id AND q.instance = e.instance
               AND q.server_request_id = e.beginning;

-- One row a request: what LMCache said of it. A lookup is repeated while it waits and after a
-- preemption; the largest hit counts. Cannot show: the tier that held the tokens.
CREATE OR REPLACE TABLE engine_requests AS
WITH said AS (
    SELECT run_id, request_id,
           count(*) FILTER (kind = 'lookup') AS n_lookups,
           max(computed_tokens) FILTER (kind = 'lookup') AS computed_tokens,
           max(hit_tokens) FILTER (kind = 'lookup') AS hit_tokens,
           max(need_tokens) FILTER (kind = 'lookup') AS need_tokens,
           max(retrieved_tokens) FILTER (kind = 'retrieved') AS retrieved_tokens,
           max(required_tokens) FILTER (kind = 'retrieved') AS required_tokens,
           max(stored_tokens) FILTER (kind = 'stored') AS stored_tokens,
           min(line) AS first_line, max(line) AS last_line
    FROM log_requests GROUP BY run_id, request_id
)
SELECT q.run_id, q.phase, q.request_id, q.instance, q.session, q.outcome, q.server_request_id,
       q.prompt_tokens, coalesce(s.n_lookups, 0) AS n_lookups,
       s.* EXCLUDE (run_id, request_id, n_lookups)
FROM requests q LEFT JOIN said s ON s.run_id = q.run_id AND s.request_id = q.request_id;

-- Reads of the patch with the phase they belong to. A read line names no request: on the sync path
-- it follows the lookup of its request, on the async path the lookup's answer follows the read; so
-- the nearest line of a request before (sync) or after it (async) tells the phase.
CREATE OR REPLACE TABLE patch_reads AS
WITH reads AS (
    SELECT *, contains(text, ' path=async ') AS is_async FROM engine_log WHERE kind = 'patch_read'
)
SELECT p.run_id, p.instance, p.line, l.phase, p.keys, p.segments, p.misses, p.read_bytes
FROM (SELECT * FROM reads WHERE NOT is_async) p
ASOF LEFT JOIN log_requests l
    ON p.run_id = l.run_id AND p.instance = l.instance AND p.line >= l.line
UNION ALL
SELECT p.run_id, p.instance, p.line, l.phase, p.keys, p.segments, p.misses, p.read_bytes
FROM (SELECT * FROM reads WHERE is_async) p
ASOF LEFT JOIN log_requests l
    ON p.run_id = l.run_id AND p.instance = l.instance AND p.line <= l.line;

-- ---------------------------------------------------------------- bytes of a run
-- All byte counts of a run's measure phase, each with its reason when it is NULL.
--   process_read_bytes          read_bytes of the engine's process tree; n is its processes.
--                               The kernel adds a reaped child's bytes to its parent. A tree that
--                               the site names for several instances is counted once.
--   other_kv_device_read_bytes  of the devices other arms keep their KV on
--   member_read_bytes           of the KV device's members by topology (md, multipath)
--   non_kv_read_bytes           of the recorded devices that hold no KV: libraries read again
--                               after a drop. Partitions and paths of a device are not counted
--                               beside it. Cannot show: reads of a loop device's backing disk apart
--                               from others on that disk.
--   engine_hit_bytes            hit tokens / chunk_tokens * chunk_bytes over the measured requests;
--                               refused when one of them has no lookup line. n is the requests.
--   patch_read_bytes            bytes by the patch's own read lines; n is the lines. Refused when
--                               the log has no line of a loaded patch.
CREATE OR REPLACE TABLE run_bytes AS
WITH reads AS (
    SELECT * FROM phase_reads WHERE phase = 'measure' AND occurrence = 1
),
facts AS (
    SELECT run_id, host, device, arg_max(text, mono_ns) FILTER (counter = 'kind') AS kind,
           arg_max(text, mono_ns) FILTER (counter = 'members') AS members
    FROM probes WHERE probe = 'topology' GROUP BY run_id, host, device
),
members AS (
    SELECT DISTINCT run_id, device, unnest(string_split(members, ',')) AS member
    -- Only of kinds whose bytes are their members' bytes; the disk under a loop device or a
    -- partition is none of them.
    FROM facts WHERE members <> '' AND kind IN ('md', 'dm', 'nvme-head')
),
wanted AS (
    SELECT run_id, 'member_read_bytes' AS metric, member AS device
    FROM members JOIN runs USING (run_id) WHERE device = kv_device
    UNION ALL
    SELECT run_id, 'other_kv_device_read_bytes', unnest(other_kv_devices) FROM runs
    UNION ALL
    SELECT DISTINCT d.run_id, 'non_kv_read_bytes', d.device
    FROM reads d JOIN runs r USING (run_id)
    LEFT JOIN facts f ON f.run_id = d.run_id AND f.host = d.host AND f.device = d.device
    WHERE d.probe = 'disk' AND d.device <> r.kv_device
      AND NOT list_contains(r.other_kv_devices, d.device)
      AND coalesce(f.kind, '') NOT IN ('partition', 'nvme-path')
      AND NOT EXISTS (SELECT 1 FROM members m
                      WHERE m.run_id = d.run_id AND m.member = d.device)
),
disks AS (
    SELECT w.run_id, w.metric, count(DISTINCT w.device) AS n, sum(d.read_bytes) AS read_bytes,
           min(CASE WHEN d.device IS NULL THEN w.device || ': no samples around the phase'
                    WHEN d.reason IS NOT NULL THEN w.device || ': ' || d.reason END) AS reason
    FROM wanted w
    LEFT JOIN reads d ON d.run_id = w.run_id AND d.device = w.device AND d.probe = 'disk'
    GROUP BY w.run_id, w.metric
),
processes AS (
    SELECT run_id, 'process_read_bytes' AS metric, count(*) AS n, sum(read_bytes) AS read_bytes,
           min(CASE WHEN reason IS NOT NULL THEN device || ': ' || reason END) AS reason
    FROM (SELECT run_id, min(device) AS device, max(read_bytes) AS read_bytes,
                 min(reason) AS reason
          FROM reads WHERE probe = 'process'
          GROUP BY run_id, host, regexp_replace(device, '^[^:]*:', ''))
    GROUP BY run_id
),
hits AS (
    SELECT e.run_id, 'engine_hit_bytes' AS metric, count(*) AS n,
           CAST(sum(e.hit_tokens) // any_value(r.chunk_tokens) AS HUGEINT)
               * any_value(r.chunk_bytes) AS read_bytes,
           CASE WHEN count(*) > count(e.hit_tokens)
                THEN count(*) - count(e.hit_tokens) || ' of ' || count(*)
                     || ' measured requests have no lookup line' END AS reason
    FROM engine_requests e JOIN runs r USING (run_id) WHERE e.phase = 'measure'
    GROUP BY e.run_id
),
patch AS (
    SELECT l.run_id, 'patch_read_bytes' AS metric, coalesce(any_value(p.n), 0) AS n,
           coalesce(any_value(p.read_bytes), 0) AS read_bytes, CAST(NULL AS VARCHAR) AS reason
    FROM engine_log l
    LEFT JOIN (SELECT run_id, count(*) AS n, sum(read_bytes) AS read_bytes FROM patch_reads
               WHERE phase = 'measure' GROUP BY run_id) p USING (run_id)
    WHERE l.kind = 'patch_loaded' GROUP BY l.run_id
),
found AS (
    FROM disks UNION ALL FROM processes UNION ALL FROM hits UNION ALL FROM patch
)
SELECT r.run_id, w.metric, coalesce(f.n, 0) AS n,
       CASE WHEN f.reason IS NULL THEN CAST(f.read_bytes AS DOUBLE) END AS value,
       CASE WHEN f.run_id IS NULL THEN w.absent ELSE f.reason END AS reason
FROM runs r CROSS JOIN (VALUES
    ('process_read_bytes', 'no engine process has samples around this phase'),
    ('other_kv_device_read_bytes', 'the run names no other KV device'),
    ('member_read_bytes', 'the KV device has no members'),
    ('non_kv_read_bytes', 'no device without KV was recorded'),
    ('engine_hit_bytes', 'no measured requests'),
    ('patch_read_bytes', 'the engine log has no line of a loaded patch')) w(metric, absent)
LEFT JOIN found f ON f.run_id = r.run_id AND f.metric = w.metric;

-- Bytes side by side, one row a run: what the certificate balances.
CREATE OR REPLACE VIEW balance AS
WITH b AS (
    PIVOT (SELECT run_id, metric, value FROM run_bytes)
    ON metric IN ('engine_hit_bytes', 'member_read_bytes', 'process_read_bytes',
                  'patch_read_bytes', 'other_kv_device_read_bytes', 'non_kv_read_bytes')
    USING any_value(value) GROUP BY run_id
)
SELECT r.campaign_id, r.arm, r.level, r.block, r.run_id, r.expected_hit_bytes,
       b.engine_hit_bytes, k.read_bytes AS device_read_bytes, b.member_read_bytes,
       b.process_read_bytes, b.patch_read_bytes, b.other_kv_device_read_bytes,
       b.non_kv_read_bytes
FROM runs r JOIN b USING (run_id)
LEFT JOIN kv_device_reads k ON k.run_id = r.run_id AND k.phase = 'measure';

-- ---------------------------------------------------------------- prediction
-- One row a measured request: what the device had to read before the engine could answer it. An
-- engine loads the KV of all requests it took into a step one after another and answers none of
-- them before the last is loaded; how many of a burst its first step takes is chance. The log says
-- which: a request is looked up when it is taken, and each finished load has its line.
--   loads_before   loads of this engine that had ended when the request was taken: equal numbers
--                  are one step, 0 is the first
--   hit_bytes      of the request, by its last lookup before its load
--   load_bytes     of its step and the steps before it, and what the other engines of the run read
--                  from the same device meanwhile, shared evenly
-- Cannot show: two steps with no load between them; they count as one.
CREATE OR REPLACE TABLE admissions AS
WITH lines AS (
    SELECT run_id, instance, request_id, kind, line, hit_tokens,
           count(*) FILTER (kind = 'retrieved')
               OVER (PARTITION BY run_id, instance ORDER BY line) AS loads_before,
           min(line) FILTER (kind = 'retrieved')
               OVER (PARTITION BY run_id, instance, request_id) AS loaded_line
    FROM log_requests
    WHERE phase = 'measure' AND kind IN ('lookup', 'retrieved')
),
taken AS (
    SELECT run_id, instance, request_id, arg_max(loads_before, line) AS loads_before,
           arg_max(hit_tokens, line) AS hit_tokens
    FROM lines WHERE kind = 'lookup' AND line < coalesce(loaded_line, line + 1)
    GROUP BY run_id, instance, request_id
),
own AS (
    SELECT q.run_id, q.instance, q.request_id, t.loads_before,
           CAST(t.hit_tokens // r.chunk_tokens AS BIGINT) * r.chunk_bytes AS hit_bytes,
           sum(hit_bytes) OVER (PARTITION BY q.run_id, q.instance ORDER BY t.loads_before
                                RANGE UNBOUNDED PRECEDING) AS own_bytes
    FROM requests q JOIN runs r USING (run_id) LEFT JOIN taken t USING (run_id, request_id)
    WHERE q.phase = 'measure'
),
totals AS (
    SELECT run_id, instance, sum(hit_bytes) AS total_bytes FROM own GROUP BY run_id, instance
)
SELECT o.run_id, o.instance, o.request_id, o.loads_before, o.hit_bytes,
       CASE WHEN o.hit_bytes IS NOT NULL
            THEN CAST(o.own_bytes + coalesce(sum(least(o.own_bytes, t.total_bytes))
                      FILTER (t.instance IS NOT NULL), 0) AS HUGEINT) END AS load_bytes
FROM own o LEFT JOIN totals t ON t.run_id = o.run_id AND t.instance <> o.instance
GROUP BY o.run_id, o.instance, o.request_id, o.loads_before, o.hit_bytes, o.own_bytes;

-- predicted_ttft p50 and max, ns: warm TTFT p50 of the same run + load_bytes (p50, max over the
-- measured requests, see `admissions`) / bandwidth, with the
-- serial bandwidth for arm `unpatched`, the ceiling for arms that read in parallel (`patched`,
-- `upstream-32`, the patched tiers `array`, `local-nvme`, `pool` of R2 and R3, and every patched
-- arm of r1-scaling; its unpatched ones read serially side by side, until the ceiling). Bytes come
-- after one another from one device. Any failed warm request voids it: the others were warm beside
-- fewer neighbours. Cannot show: overlap of loading and answering.
CREATE OR REPLACE VIEW prediction AS
SELECT r.run_id, b.statistic, b.n,
       s.value + b.load_bytes / CASE WHEN r.scenario = 'r1-scaling' AND c.name = 'serial'
                                     THEN least(len(r.instances) * c.bytes_per_s, k.bytes_per_s)
                                     ELSE c.bytes_per_s END * 1e9 AS value,
       CASE WHEN r.arm NOT IN ('unpatched', 'patched', 'upstream-32', 'array', 'local-nvme', 'pool')
                 AND r.scenario <> 'r1-scaling'
            THEN 'no prediction for arm ' || r.arm
            WHEN s.value IS NULL THEN 'warm ttft: ' || s.reason
            WHEN w.n_failed > 0 THEN w.n_failed || ' of ' || w.n || ' warm requests failed'
            WHEN b.n_untaken > 0
            THEN b.n_untaken || ' of ' || b.n || ' measured requests have no lookup line'
            ELSE c.reason END AS reason
FROM runs r
JOIN (
    SELECT run_id, v.statistic, count(*) AS n, count(*) - count(load_bytes) AS n_untaken,
           CASE v.statistic WHEN 'p50' THEN quantile_disc(load_bytes, 0.5)
                            ELSE max(load_bytes) END AS load_bytes
    FROM admissions CROSS JOIN (VALUES ('p50'), ('max')) v(statistic)
    GROUP BY run_id, v.statistic
) b ON b.run_id = r.run_id
LEFT JOIN (
    SELECT run_id, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed
    FROM requests WHERE phase = 'warm' GROUP BY run_id
) w ON w.run_id = r.run_id
JOIN request_statistics s ON s.run_id = r.run_id AND s.phase = 'warm' AND s.metric = 'ttft'
                         AND s.statistic = 'p50'
JOIN calibrated c ON c.run_id = r.run_id
                 AND c.name = CASE WHEN r.arm = 'unpatched' OR (r.scenario = 'r1-scaling'
                                        AND r.patch_expected = 'unpatched')
                                   THEN 'serial' ELSE 'ceiling' END
JOIN calibrated k ON k.run_id = r.run_id AND k.name = 'ceiling';

-- ---------------------------------------------------------------- several engines on one device
-- One row a measured run and engine instance: what it asked for, found and read.
--   load_ns        its first request sent - its last first content: how long it waited for KV
--   bytes_per_s    hit_bytes / load_ns: the share of the device one engine got
-- Cannot show: which of two engines waited for the other; they share one device and one clock.
CREATE OR REPLACE VIEW instance_reads AS
WITH mine AS (SELECT run_id, unnest(instances) AS instance FROM runs),
asked AS (
    SELECT run_id, instance, count(*) AS n, count(*) FILTER (NOT ok) AS n_failed,
           quantile_disc(CASE WHEN ok THEN CAST(ttft_ns AS DOUBLE) ELSE CAST('inf' AS DOUBLE) END,
                         0.5) AS ttft_p50_ns,
           max(CASE WHEN ok THEN CAST(ttft_ns AS DOUBLE) ELSE CAST('inf' AS DOUBLE) END)
               AS ttft_max_ns,
           max(sent_ns + ttft_ns) - min(sent_ns) AS load_ns
    FROM request_times WHERE phase = 'measure' GROUP BY run_id, instance
),
found AS (
    SELECT e.run_id, e.instance,
           CASE WHEN count(*) = count(e.hit_tokens)
                THEN CAST(CAST(sum(e.hit_tokens) // any_value(r.chunk_tokens) AS HUGEINT)
                          * any_value(r.chunk_bytes) AS BIGINT) END AS hit_bytes
    FROM engine_requests e JOIN runs r USING (run_id) WHERE e.phase = 'measure'
    GROUP BY e.run_id, e.instance
),
taken AS (
    SELECT run_id, split_part(device, ':', 1) AS instance,
           CASE WHEN count(*) = count(read_bytes) THEN CAST(sum(read_bytes) AS BIGINT) END
               AS process_read_bytes
    FROM phase_reads WHERE probe = 'process' AND phase = 'measure' AND occurrence = 1
    GROUP BY ALL
)
SELECT m.run_id, m.instance, coalesce(a.n, 0) AS n, a.n_failed, a.ttft_p50_ns, a.ttft_max_ns,
       a.load_ns, f.hit_bytes, t.process_read_bytes,
       CASE WHEN a.n_failed = 0 AND a.load_ns > 0 THEN f.hit_bytes / (a.load_ns / 1e9) END
           AS bytes_per_s
FROM mine m
LEFT JOIN asked a USING (run_id, instance)
LEFT JOIN found f USING (run_id, instance)
LEFT JOIN taken t USING (run_id, instance);

-- fairness jain: (sum of x)^2 / (n * sum of x^2) over the instances' bytes_per_s: 1 when all got
-- the same, 1/n when one got everything (Jain, Chiu, Hawe 1984). Needs two instances.
CREATE OR REPLACE VIEW fairness AS
WITH rates AS (
    SELECT run_id, count(*) AS n, count(bytes_per_s) AS known, sum(bytes_per_s) AS total,
           sum(bytes_per_s ** 2) AS squares
    FROM instance_reads GROUP BY run_id
)
SELECT run_id, n, CASE WHEN n > 1 AND known = n THEN total ** 2 / (n * squares) END AS value,
       CASE WHEN n < 2 THEN 'one instance'
            WHEN known < n THEN n - known || ' of ' || n || ' instances without a read rate'
            END AS reason
FROM rates;

-- r1-scaling: a run of n instances against the run of one instance in its own block, same patch
-- state, each instance under the same load.
--   speedup               aggregate device_read_bandwidth (mean) / that of one instance
--   efficiency            speedup / n
--   predicted_speedup     min(n * one instance, device ceiling) / one instance
--   of_predicted          speedup / predicted_speedup
-- Cannot show: what a larger device would have given; efficiency falls by definition once one
-- instance alone reaches the ceiling, so ceiling_fraction stands beside it.
CREATE OR REPLACE VIEW scaling AS
WITH cells AS (
    SELECT r.run_id, r.campaign_id, r.block, r.patch_expected, len(r.instances) AS n_instances,
           r.concurrency, b.value AS bytes_per_s, b.reason AS no_bandwidth,
           c.bytes_per_s AS ceiling_bytes_per_s, c.reason AS no_ceiling
    FROM runs r
    JOIN bandwidth b ON b.run_id = r.run_id AND b.metric = 'device_read_bandwidth'
                    AND b.statistic = 'mean'
    JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    WHERE r.scenario = 'r1-scaling'
)
SELECT m.run_id, m.n_instances, m.bytes_per_s, o.run_id AS one_run_id,
       o.bytes_per_s AS one_bytes_per_s, m.ceiling_bytes_per_s,
       m.bytes_per_s / o.bytes_per_s AS speedup,
       speedup / m.n_instances AS efficiency,
       least(m.n_instances * o.bytes_per_s, greatest(m.ceiling_bytes_per_s, o.bytes_per_s))
           / o.bytes_per_s AS predicted_speedup,
       speedup / predicted_speedup AS of_predicted,
       CASE WHEN o.run_id IS NULL THEN 'no run of one instance in this block'
            ELSE coalesce(m.no_bandwidth, o.no_bandwidth, m.no_ceiling) END AS reason
FROM cells m
LEFT JOIN cells o ON o.campaign_id = m.campaign_id AND o.block = m.block AND o.n_instances = 1
                 AND o.patch_expected IS NOT DISTINCT FROM m.patch_expected
                 AND o.concurrency * m.n_instances = m.concurrency;

-- ---------------------------------------------------------------- as others compute it
-- output_throughput_as_published, tokens/s: requests * planned output tokens / (end of the last
-- stream - first request sent), the formula N * 64 / wall of the published reports. Beside
-- output_throughput it shows what counting planned instead of generated tokens, and waiting for
-- the end of every stream, is worth. Cannot show: the time the published clients also waited until
-- a poll noticed the end; failed requests, which it counts as if they had answered.
CREATE OR REPLACE VIEW published_throughput AS
WITH spans AS (
    SELECT run_id, phase, count(*) AS n, count(*) - count(done_ns) AS n_open,
           (max(done_ns) - min(sent_ns)) / 1e9 AS wall_s
    FROM requests GROUP BY run_id, phase
)
SELECT r.run_id, w.phase, 'output_throughput_as_published' AS metric, '' AS statistic,
       'tokens/s' AS unit, coalesce(s.n, 0) AS n,
       CASE WHEN s.n_open = 0 AND s.wall_s > 0 THEN s.n * r.output_tokens / s.wall_s END AS value,
       'requests * planned tokens / wall' AS estimator,
       CASE WHEN s.n IS NULL THEN 'no requests in this phase'
            WHEN s.n_open > 0 THEN s.n_open || ' streams without an end'
            WHEN s.wall_s <= 0 THEN 'no time passed' END AS reason
FROM runs r CROSS JOIN (VALUES ('measure'), ('warm')) w(phase)
LEFT JOIN spans s ON s.run_id = r.run_id AND s.phase = w.phase;

-- Where a measured session was populated, and what its own request hit: one row a measured
-- request. Sharing between engines is hit_tokens on rows whose populated_on is another instance.
-- Cannot show: which tier held the tokens; the byte balance of the run does.
CREATE OR REPLACE VIEW request_origin AS
SELECT m.run_id, m.request_id, m.session, m.instance AS measured_on, p.instance AS populated_on,
       e.n_lookups, e.hit_tokens, e.retrieved_tokens
FROM requests m
LEFT JOIN requests p ON p.run_id = m.run_id AND p.session = m.session AND p.phase = 'populate'
                    AND p.outcome = 'ok'
LEFT JOIN engine_requests e ON e.run_id = m.run_id AND e.request_id = m.request_id
WHERE m.phase = 'measure';

-- ---------------------------------------------------------------- work without a KV engine
-- One row a worker and phase of a work run (loading, switching, a checkpoint): what the worker said,
-- instants on the monotonic clock it shares with everything else. scheduled_ns is the barrier.
-- outcome: ok, failed (its own error), ended (the process was gone), silent (no answer in time).
-- A worker that starts an engine began with it at started_ns, loaded by the engine's log from
-- begin_ns to end_ns, and could answer from serve_begin_ns on; for others the three pairs are one.
-- Cannot show: which device the bytes came from; the byte balance of the run does.
CREATE OR REPLACE TABLE work AS
SELECT run_id,
       json_extract_string(detail, '$.phase') AS phase,
       json_extract_string(detail, '$.worker') AS worker,
       json_extract_string(detail, '$.outcome') AS outcome,
       json_extract_string(detail, '$.error') AS error,
       CAST(json_extract_string(detail, '$.scheduled_ns') AS BIGINT) AS scheduled_ns,
       CAST(json_extract_string(detail, '$.begin_ns') AS BIGINT) AS begin_ns,
       CAST(json_extract_string(detail, '$.end_ns') AS BIGINT) AS end_ns,
       CAST(json_extract_string(detail, '$.bytes') AS BIGINT) AS bytes,
       CAST(coalesce(json_extract_string(detail, '$.started_ns'),
                     json_extract_string(detail, '$.begin_ns')) AS BIGINT) AS started_ns,
       CAST(coalesce(json_extract_string(detail, '$.serve_begin_ns'),
                     json_extract_string(detail, '$.end_ns')) AS BIGINT) AS serve_begin_ns,
       CAST(json_extract_string(detail, '$.serve_end_ns') AS BIGINT) AS serve_end_ns,
       detail
FROM events
WHERE name = 'work' AND json_valid(detail);

-- Times and bytes of a phase of work; NULL as soon as one worker did not go through.
--   work_wall           last end - first begin of the phase, ns. n is the workers.
--   work_time mean/max  end - begin of one worker, ns. Cannot show: how they shared the device.
--   work_bytes          bytes the workers say they moved
--   work_bandwidth      work_bytes / work_wall
CREATE OR REPLACE TABLE work_statistics AS
WITH sums AS (
    SELECT run_id, phase, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed,
           max(end_ns) - min(begin_ns) AS wall_ns, avg(end_ns - begin_ns) AS mean_ns,
           max(end_ns - begin_ns) AS max_ns, sum(bytes) AS bytes
    FROM work GROUP BY run_id, phase
)
SELECT r.run_id, w.phase, v.metric, v.statistic, v.unit, coalesce(s.n, 0) AS n,
       CASE WHEN s.n IS NULL THEN 'no work in this phase'
            WHEN s.n_failed > 0 THEN s.n_failed || ' of ' || s.n || ' workers failed'
            WHEN s.wall_ns <= 0 THEN 'no time passed' END AS reason,
       CASE WHEN reason IS NULL THEN
            CASE v.metric WHEN 'work_wall' THEN CAST(s.wall_ns AS DOUBLE)
                          WHEN 'work_bytes' THEN CAST(s.bytes AS DOUBLE)
                          WHEN 'work_bandwidth' THEN s.bytes / (s.wall_ns / 1e9)
                          ELSE CASE v.statistic WHEN 'mean' THEN s.mean_ns
                                                ELSE CAST(s.max_ns AS DOUBLE) END END END AS value,
       v.estimator
FROM runs r CROSS JOIN (VALUES ('measure'), ('warm')) w(phase)
CROSS JOIN (VALUES ('work_wall', '', 'ns', 'last end - first begin'),
                   ('work_time', 'mean', 'ns', 'mean over workers'),
                   ('work_time', 'max', 'ns', 'maximum'),
                   ('work_bytes', '', 'bytes', 'sum over workers'),
                   ('work_bandwidth', '', 'bytes/s', 'bytes / (last end - first begin)')
           ) v(metric, statistic, unit, estimator)
LEFT JOIN sums s ON s.run_id = r.run_id AND s.phase = w.phase
WHERE r.job IS NOT NULL;

-- What the device alone would need, beside what was measured; jobs that read.
--   predicted_work_wall   load: bytes of all files / ceiling_bandwidth of the same block, ns
--   wall_over_predicted   work_wall / predicted_work_wall, no unit: 1 is a loader that keeps the
--                         device as busy as fio does. Cannot show: what the rest was spent on.
--   predicted_work_time   switch: bytes of one worker's files / ceiling_bandwidth; its loads come
--                         one after another
--   time_over_predicted   work_time mean / predicted_work_time
CREATE OR REPLACE VIEW work_prediction AS
WITH wanted(job, measured, statistic, predicted, quotient) AS (
    VALUES ('load', 'work_wall', '', 'predicted_work_wall', 'wall_over_predicted'),
           ('switch', 'work_time', 'mean', 'predicted_work_time', 'time_over_predicted')
),
found AS (
    SELECT r.run_id, w.predicted, w.quotient, s.value AS measured_ns, s.n, s.reason AS unmeasured,
           CASE w.job WHEN 'load' THEN r.work_bytes ELSE r.work_bytes / r.workers END
               / c.bytes_per_s * 1e9 AS predicted_ns, c.reason
    FROM runs r JOIN wanted w ON w.job = r.job
    JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    JOIN work_statistics s ON s.run_id = r.run_id AND s.phase = 'measure'
                          AND s.metric = w.measured AND s.statistic = w.statistic
)
SELECT run_id, predicted AS metric, '' AS statistic, 'ns' AS unit, n,
       CASE WHEN reason IS NULL THEN predicted_ns END AS value,
       'bytes of the files / ceiling bandwidth' AS estimator, reason
FROM found
UNION ALL
SELECT run_id, quotient, '', '', n, CASE WHEN reason IS NULL THEN measured_ns / predicted_ns END,
       'measured / predicted', coalesce(reason, unmeasured)
FROM found;

-- ---------------------------------------------------------------- the engine as a loader
-- What an engine said of its own load in the measured phase, one row a worker: seconds, the size of
-- the checkpoint in GiB (both rounded to two digits by it), the directory. NULL where it did not say.
CREATE OR REPLACE VIEW engine_loads AS
WITH lines AS (
    SELECT run_id, instance AS worker,
           regexp_extract(text, 'Loading weights took ([0-9.]+) seconds', 1) AS seconds,
           regexp_extract(text, 'Checkpoint size: ([0-9.]+) GiB', 1) AS gib,
           regexp_extract(text, 'Starting to load model (.+?)\.\.\.', 1) AS directory
    FROM engine_log WHERE kind = 'weights'
)
SELECT run_id, worker, max(TRY_CAST(seconds AS DOUBLE)) AS said_s,
       max(TRY_CAST(gib AS DOUBLE)) AS said_gib, max(nullif(directory, '')) AS said_directory,
       count(*) FILTER (directory <> '') AS n_loads
FROM lines GROUP BY run_id, worker;

-- Times of engines that load, ns, mean over the workers of the measured phase.
--   engine_said_load   what the engines' own lines say they took
--   engine_start       engine started - could answer, its load included
--   engine_wait        switch due - the engine before was gone; 0 where none was before
CREATE OR REPLACE VIEW engine_work AS
WITH rows AS (
    SELECT w.run_id, w.outcome, l.said_s * 1e9 AS said_ns,
           w.serve_begin_ns - CAST(json_extract_string(w.detail, '$.turn_ns') AS BIGINT) AS start_ns,
           CAST(json_extract_string(w.detail, '$.turn_ns') AS BIGINT) - w.started_ns AS wait_ns
    FROM work w LEFT JOIN engine_loads l USING (run_id, worker) WHERE w.phase = 'measure'
),
means AS (
    SELECT run_id, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed,
           count(*) FILTER (said_ns IS NULL) AS n_silent, avg(said_ns) AS said_ns,
           avg(start_ns) AS start_ns, avg(wait_ns) AS wait_ns
    FROM rows GROUP BY run_id
)
SELECT r.run_id, v.metric, 'mean' AS statistic, 'ns' AS unit, coalesce(m.n, 0) AS n, v.estimator,
       CASE WHEN m.n IS NULL THEN 'no work in this phase'
            WHEN m.n_failed > 0 THEN m.n_failed || ' of ' || m.n || ' workers failed'
            WHEN v.metric = 'engine_said_load' AND m.n_silent > 0
            THEN m.n_silent || ' engines did not say what their load took' END AS reason,
       CASE WHEN reason IS NULL THEN
            CASE v.metric WHEN 'engine_said_load' THEN m.said_ns
                          WHEN 'engine_start' THEN m.start_ns ELSE m.wait_ns END END AS value
FROM runs r CROSS JOIN (VALUES
    ('engine_said_load', 'mean of the engines'' own words'),
    ('engine_start', 'mean of first answer - start'),
    ('engine_wait', 'mean of start - switch due')) v(metric, estimator)
LEFT JOIN means m USING (run_id)
WHERE r.tool = 'engine';

-- ---------------------------------------------------------------- checkpoint writes
-- What the device takes by itself, bytes/s: the best of the run's `write_ceiling` events.
CREATE OR REPLACE TABLE write_calibrated AS
WITH speeds AS (
    SELECT run_id, CAST(json_extract_string(detail, '$.write_bytes') AS BIGINT)
               / (CAST(json_extract_string(detail, '$.elapsed_ns') AS BIGINT) / 1e9) AS bytes_per_s
    FROM events WHERE name = 'write_ceiling' AND json_valid(detail)
)
SELECT r.run_id, count(c.run_id) AS n, max(c.bytes_per_s) AS bytes_per_s,
       CASE WHEN count(c.run_id) = 0 THEN 'no write_ceiling in this run' END AS reason
FROM runs r LEFT JOIN speeds c ON c.run_id = r.run_id AND isfinite(c.bytes_per_s)
WHERE r.job = 'checkpoint'
GROUP BY r.run_id;

-- The timed window of a save: first rank's begin to last rank's end, commit and flushes included.
--   save_ns         its length; NULL unless every rank went through
--   payload_bytes   bytes of the weights, file_bytes those of the files with their headers
CREATE OR REPLACE TABLE saves AS
SELECT r.run_id, count(w.worker) AS n, min(w.begin_ns) AS begin_ns, max(w.end_ns) AS end_ns,
       sum(w.bytes) AS payload_bytes,
          sum(CAST(json_extract_string(w.detail, '$.file_bytes') AS BIGINT)) AS file_bytes,
       CASE WHEN count(w.worker) = 0 THEN 'no rank wrote'
            WHEN count(*) FILTER (w.outcome <> 'ok') > 0
            THEN count(*) FILTER (w.outcome <> 'ok') || ' of ' || count(*) || ' ranks failed'
            END AS reason,
       CASE WHEN reason IS NULL THEN max(w.end_ns) - min(w.begin_ns) END AS save_ns
FROM runs r LEFT JOIN work w ON w.run_id = r.run_id AND w.phase = 'measure'
WHERE r.job = 'checkpoint'
GROUP BY r.run_id;

-- Metrics of a save; the device is the run's KV device.
--   save_time                    save_ns
--   predicted_save_time          file_bytes / write_ceiling_bandwidth of the same run
--   save_over_predicted          save_time / predicted_save_time: 1 is a save that keeps the device
--                                as busy as fio does. Cannot show: what the rest was spent on.
--   snapshot_bytes               payload_bytes of all ranks
--   device_write_bytes           of the sample intervals that touch the window. Cannot show: who
--                                wrote them.
--   write_amplification          device_write_bytes / file_bytes
--   device_write_bandwidth mean  device_write_bytes / save_time
--   device_write_bandwidth busy  bytes / time of the 1 s windows that wrote more than 5 % of the
--                                write ceiling: the sustained rate, without pauses
--   write_ceiling_fraction       bandwidth / write_ceiling_bandwidth, no unit
CREATE OR REPLACE TABLE save_metrics AS
-- As in device_series, of the KV device of these runs alone.
WITH series AS (
    SELECT s.run_id, s.begin_ns AS save_begin_ns, s.end_ns AS save_end_ns,
           lag(p.mono_ns) OVER w AS begin_ns, p.mono_ns AS end_ns,
           512 * (p.value - lag(p.value) OVER w) AS write_bytes
    FROM saves s JOIN runs r USING (run_id)
    JOIN probes p ON p.run_id = s.run_id AND p.device = r.kv_device
    WHERE s.reason IS NULL AND p.probe = 'disk' AND p.counter = 'write_sectors'
    WINDOW w AS (PARTITION BY s.run_id, p.host, p.epoch ORDER BY p.mono_ns)
),
steps AS (
    SELECT run_id, begin_ns, end_ns, write_bytes,
           (end_ns - save_begin_ns - 1) // 1000000000 AS second_no
    FROM series WHERE end_ns > save_begin_ns AND begin_ns < save_end_ns
),
windows AS (
    SELECT run_id, second_no, sum(write_bytes) AS write_bytes, sum(end_ns - begin_ns) AS elapsed_ns
    FROM steps GROUP BY run_id, second_no
),
busy AS (
    SELECT w.run_id, count(*) AS n, sum(w.write_bytes) AS write_bytes,
           sum(w.elapsed_ns) AS elapsed_ns
    FROM windows w JOIN write_calibrated c USING (run_id)
    WHERE w.write_bytes / (w.elapsed_ns / 1e9) > 0.05 * c.bytes_per_s
    GROUP BY w.run_id
),
whole AS (SELECT run_id, count(*) AS n, sum(write_bytes) AS write_bytes FROM steps GROUP BY run_id),
found AS (
    SELECT s.run_id, s.n, s.save_ns, s.payload_bytes, s.file_bytes, s.reason,
           c.bytes_per_s AS ceiling, c.reason AS no_ceiling, w.write_bytes, w.n AS n_steps,
           b.write_bytes / (b.elapsed_ns / 1e9) AS busy, b.n AS n_busy,
           CASE WHEN w.run_id IS NULL THEN 'the device has no samples in the window' END AS silent,
           CASE WHEN b.run_id IS NULL THEN 'no window above 5 % of the write ceiling' END AS idle
    FROM saves s
    JOIN write_calibrated c USING (run_id)
    LEFT JOIN whole w USING (run_id)
    LEFT JOIN busy b USING (run_id)
)
SELECT f.run_id, v.metric, v.statistic, v.unit,
       CASE v.needs WHEN 'samples' THEN coalesce(f.n_steps, 0) WHEN 'busy' THEN coalesce(f.n_busy, 0)
                    ELSE f.n END AS n,
       v.estimator,
       coalesce(f.reason, CASE v.needs WHEN 'ceiling' THEN f.no_ceiling
                                       WHEN 'samples' THEN f.silent
                                       WHEN 'both' THEN coalesce(f.silent, f.no_ceiling)
                                       WHEN 'busy' THEN coalesce(f.silent, f.no_ceiling, f.idle)
                                       END) AS reason,
       CASE WHEN reason IS NULL THEN CASE v.metric
           WHEN 'save_time' THEN CAST(f.save_ns AS DOUBLE)
           WHEN 'predicted_save_time' THEN f.file_bytes / f.ceiling * 1e9
           WHEN 'save_over_predicted' THEN f.save_ns / (f.file_bytes / f.ceiling * 1e9)
           WHEN 'snapshot_bytes' THEN CAST(f.payload_bytes AS DOUBLE)
           WHEN 'device_write_bytes' THEN CAST(f.write_bytes AS DOUBLE)
           WHEN 'write_amplification' THEN f.write_bytes / f.file_bytes
           WHEN 'device_write_bandwidth' THEN
               CASE v.statistic WHEN 'mean' THEN f.write_bytes / (f.save_ns / 1e9) ELSE f.busy END
           WHEN 'write_ceiling_fraction' THEN
               CASE v.statistic WHEN 'mean' THEN f.write_bytes / (f.save_ns / 1e9) ELSE f.busy END
               / f.ceiling
           END END AS value
FROM found f CROSS JOIN (VALUES
    ('save_time', '', 'ns', '', 'last end - first begin, flushes and commit included'),
    ('predicted_save_time', '', 'ns', 'ceiling', 'file bytes / write ceiling'),
    ('save_over_predicted', '', '', 'ceiling', 'save time / predicted save time'),
    ('snapshot_bytes', '', 'bytes', '', 'sum over ranks'),
    ('device_write_bytes', '', 'bytes', 'samples', 'counter difference'),
    ('write_amplification', '', '', 'samples', 'device bytes / file bytes'),
    ('device_write_bandwidth', 'mean', 'bytes/s', 'samples', 'device bytes / save time'),
    ('device_write_bandwidth', 'busy', 'bytes/s', 'busy',
     'bytes / time of 1 s windows above 5 % of the write ceiling'),
    ('write_ceiling_fraction', 'mean', '', 'both', 'mean bandwidth / write ceiling'),
    ('write_ceiling_fraction', 'busy', '', 'busy', 'busy bandwidth / write ceiling')
    ) v(metric, statistic, unit, needs, estimator);

-- Share of an hour left for work at n switches an hour, by the published model: 1 - n * t / 3600,
-- t the mean load of the run in modelled seconds (times time_scale). A model, never a measurement;
-- NULL where the loads alone need more than the hour. Cannot show: time lost to anything but
-- loading, work that goes on meanwhile.
CREATE OR REPLACE TABLE utilisation AS
WITH loads AS (
    SELECT r.run_id, r.arm, r.block, s.value * r.time_scale / 1e9 AS load_s, s.n AS n_loads,
           s.reason, c.bytes_per_s,
           r.work_bytes / r.workers / c.bytes_per_s * r.time_scale AS predicted_load_s
    FROM runs r
    JOIN work_statistics s ON s.run_id = r.run_id AND s.phase = 'measure'
                          AND s.metric = 'work_time' AND s.statistic = 'mean'
    LEFT JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    WHERE r.job = 'switch'
)
SELECT run_id, arm, block, n_per_hour, n_loads, load_s, predicted_load_s,
       CASE WHEN n_per_hour * load_s <= 3600 THEN 1 - n_per_hour * load_s / 3600 END AS utilisation,
       CASE WHEN n_per_hour * predicted_load_s <= 3600
            THEN 1 - n_per_hour * predicted_load_s / 3600 END AS predicted_utilisation,
       CASE WHEN reason IS NOT NULL THEN reason
            WHEN n_per_hour * load_s > 3600
            THEN n_per_hour || ' loads of ' || round(load_s, 1) || ' s are more than the hour'
       END AS reason
FROM loads CROSS JOIN (SELECT unnest(generate_series(1, 60)) AS n_per_hour);

-- A switching run's own hour: what was served beside what the model says at the same pace.
--   utilisation_measured   sum of (stopped answering - could answer) / (last stop - first switch).
--                          A worker that could not answer when the next switch was due is refused,
--                          not cut. Where engines are switched, stopping and starting them is in it,
--                          and in the model's load is not.
--   utilisation_modelled pace  1 - mean load / (time from switch to switch)
--   utilisation_modelled whole the same with the whole switch for the load: from its instant until
--                          it could answer. Where loaders switch, the two are one but for their lag.
--   utilisation_modelled n20   the view `utilisation` at the published 20 switches an hour
--   predicted_utilisation n20  the same with bytes / ceiling_bandwidth for the load
--   utilisation_over_predicted n20, utilisation_over_modelled pace and whole: measured by those
CREATE OR REPLACE VIEW utilisation_metrics AS
WITH served AS (
    SELECT w.run_id, count(*) AS n, sum(serve_end_ns - serve_begin_ns) AS served_ns,
           max(serve_end_ns) - min(started_ns) AS window_ns,
           avg(serve_begin_ns - scheduled_ns) AS switch_ns, avg(end_ns - begin_ns) AS load_ns,
           (max(scheduled_ns) - min(scheduled_ns)) / (count(*) - 1) AS period_ns,
           count(*) FILTER (outcome <> 'ok') AS n_failed, count(*) FILTER (serve_end_ns IS NULL)
               AS n_idle, count(*) FILTER (serve_begin_ns - scheduled_ns > late_ns) AS n_late
    FROM (SELECT *, min(scheduled_ns) OVER (PARTITION BY run_id ORDER BY scheduled_ns
                 ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) - scheduled_ns AS late_ns
          FROM work WHERE phase = 'measure') w
    GROUP BY w.run_id
),
runs_here AS (
    SELECT r.run_id, coalesce(s.n, 0) AS n, s.served_ns / s.window_ns AS measured,
           1 - s.load_ns / s.period_ns AS at_pace, 1 - s.switch_ns / s.period_ns AS whole, u.utilisation, u.predicted_utilisation,
           u.reason AS no_model,
           CASE WHEN s.n IS NULL THEN 'no work in this phase'
                WHEN s.n_failed > 0 THEN s.n_failed || ' of ' || s.n || ' switches failed'
                WHEN s.n < 2 THEN 'one switch has no pace'
                WHEN s.n_idle > 0 THEN s.n_idle || ' workers did not serve'
                WHEN s.n_late > 0
                THEN s.n_late || ' loads were not over when the next switch was due' END AS reason
    FROM runs r LEFT JOIN served s USING (run_id)
    LEFT JOIN utilisation u ON u.run_id = r.run_id AND u.n_per_hour = 20
    WHERE r.job = 'switch'
)
SELECT h.run_id, v.metric, v.statistic, '' AS unit, h.n, v.estimator,
       CASE v.metric WHEN 'utilisation_modelled'
            THEN CASE v.statistic WHEN 'n20' THEN h.no_model ELSE h.reason END
            WHEN 'predicted_utilisation' THEN CASE WHEN h.predicted_utilisation IS NULL
                 THEN 'no calibrated ceiling, or loads beyond the hour' END
            WHEN 'utilisation_over_predicted' THEN coalesce(h.reason,
                 CASE WHEN h.predicted_utilisation IS NULL THEN 'no prediction' END)
            ELSE h.reason END AS reason,
       CASE WHEN reason IS NULL THEN
            CASE v.metric WHEN 'utilisation_measured' THEN h.measured
                          WHEN 'utilisation_over_modelled' THEN h.measured
                              / CASE v.statistic WHEN 'whole' THEN h.whole ELSE h.at_pace END
                          WHEN 'utilisation_over_predicted' THEN h.measured / h.predicted_utilisation
                          WHEN 'predicted_utilisation' THEN h.predicted_utilisation
                          ELSE CASE v.statistic WHEN 'n20' THEN h.utilisation
                                                WHEN 'whole' THEN h.whole ELSE h.at_pace END
            END END AS value
FROM runs_here h CROSS JOIN (VALUES
    ('utilisation_measured', '', 'served / window'),
    ('utilisation_modelled', 'pace', 'modelled: 1 - mean load / period'),
    ('utilisation_modelled', 'whole', 'modelled: 1 - mean whole switch / period'),
    ('utilisation_modelled', 'n20', 'modelled: 1 - 20 * mean load / 3600 s'),
    ('predicted_utilisation', 'n20', 'modelled: 1 - 20 * bytes / ceiling / 3600 s'),
    ('utilisation_over_modelled', 'pace', 'measured / modelled'),
    ('utilisation_over_modelled', 'whole', 'measured / modelled'),
    ('utilisation_over_predicted', 'n20', 'measured / predicted')) v(metric, statistic, estimator);

-- ---------------------------------------------------------------- all metrics
-- Those that no stated limit changes: all but phase_rates.
CREATE OR REPLACE TABLE settled_metrics AS
    SELECT run_id, phase, metric, statistic, value, unit, n, estimator, reason
    FROM request_statistics
    UNION ALL BY NAME
    SELECT run_id, phase, metric, statistic, value, unit, n, estimator, reason
    FROM published_throughput
    UNION ALL BY NAME
    SELECT run_id, phase, 'device_read_bytes' AS metric, '' AS statistic,
           CAST(read_bytes AS DOUBLE) AS value, 'bytes' AS unit, n,
           'counter difference' AS estimator, reason
    FROM kv_device_reads
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, '' AS statistic, value, 'bytes' AS unit, n,
           CASE metric WHEN 'engine_hit_bytes' THEN 'hit tokens by lookup lines'
                       WHEN 'patch_read_bytes' THEN 'bytes by the patch''s read lines'
                       ELSE 'counter difference' END AS estimator, reason
    FROM run_bytes
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, statistic, value, unit, n, estimator, reason
    FROM bandwidth
    UNION ALL BY NAME
    SELECT run_id, phase, metric, statistic, value, unit, n, estimator, reason FROM work_statistics
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, statistic, value, unit, n, estimator, reason
    FROM work_prediction
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, statistic, value, unit, n, estimator, reason
    FROM engine_work
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, statistic, value, unit, n, estimator, reason
    FROM save_metrics
    UNION ALL BY NAME
    SELECT run_id, 'calibration' AS phase, 'write_ceiling_bandwidth' AS metric, '' AS statistic,
           bytes_per_s AS value, 'bytes/s' AS unit, n, 'best of its rows' AS estimator, reason
    FROM write_calibrated
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, metric, statistic, value, unit, n, estimator, reason
    FROM utilisation_metrics
    UNION ALL BY NAME
    SELECT run_id, 'calibration' AS phase, name || '_bandwidth' AS metric, '' AS statistic,
           bytes_per_s AS value, 'bytes/s' AS unit, n,
           CASE name WHEN 'ceiling' THEN 'best of its rows' ELSE 'bytes / time' END AS estimator,
           reason
    FROM calibrated
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, 'predicted_ttft' AS metric, statistic,
           CASE WHEN reason IS NULL THEN value END AS value, 'ns' AS unit, n,
           'warm ttft p50 + ' || statistic || ' of bytes until loaded / calibrated bandwidth'
               AS estimator, reason
    FROM prediction
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, 'first_step_requests' AS metric, '' AS statistic,
           CASE WHEN reason IS NULL THEN n_first END AS value, '' AS unit, n,
           'count of requests taken before any load had ended' AS estimator, reason
    FROM (SELECT run_id, count(*) AS n, count(*) FILTER (loads_before = 0) AS n_first,
                 CASE WHEN n > count(loads_before)
                      THEN n - count(loads_before) || ' of ' || n
                           || ' measured requests have no lookup line' END AS reason
          FROM admissions GROUP BY run_id)
    UNION ALL BY NAME
    SELECT run_id, 'measure' AS phase, 'fairness' AS metric, 'jain' AS statistic, value,
           '' AS unit, n, 'Jain index over instances' AS estimator, reason
    FROM fairness
    UNION ALL BY NAME
    SELECT s.run_id, 'measure' AS phase, v.metric, '' AS statistic,
           CASE WHEN s.reason IS NULL THEN
                CASE v.metric WHEN 'scaling_speedup' THEN s.speedup
                              WHEN 'scaling_efficiency' THEN s.efficiency
                              WHEN 'predicted_scaling_speedup' THEN s.predicted_speedup
                              ELSE s.of_predicted END END AS value,
           CASE WHEN v.metric = 'scaling_efficiency' THEN '' ELSE 'x' END AS unit,
           s.n_instances AS n, v.estimator, s.reason
    FROM scaling s CROSS JOIN (VALUES
        ('scaling_speedup', 'aggregate bandwidth / that of one instance'),
        ('scaling_efficiency', 'speedup / instances'),
        ('predicted_scaling_speedup', 'min(n * one instance, ceiling) / one instance'),
        ('scaling_of_predicted', 'speedup / predicted speedup')) v(metric, estimator);

-- One row a run, phase, metric and statistic. value NULL has its reason.
CREATE OR REPLACE VIEW metrics AS
WITH rows AS (
    FROM settled_metrics
    UNION ALL BY NAME
    SELECT run_id, phase, metric, statistic, value, unit, n, estimator, reason FROM phase_rates
)
SELECT m.run_id, r.campaign_id, r.scenario, r.arm, r.level, r.block, m.phase, m.metric,
       m.statistic, m.value, m.unit, m.n, m.estimator, m.reason
FROM rows m JOIN runs r USING (run_id);

-- ---------------------------------------------------------------- arms against each other
-- ln(numerator / denominator) of every metric between two arms of one block; NULL unless both are
-- finite and positive. Every ordered pair of arms is there. Runs are not filtered: which of them
-- may count is the certificate's business.
CREATE OR REPLACE VIEW arm_ratio AS
SELECT a.campaign_id, a.scenario, a.level, a.block, a.phase, a.metric, a.statistic,
       a.arm AS numerator_arm, b.arm AS denominator_arm,
       a.run_id AS numerator_run_id, b.run_id AS denominator_run_id,
       a.value AS numerator, b.value AS denominator,
       CASE WHEN a.value > 0 AND b.value > 0 AND isfinite(a.value) AND isfinite(b.value)
            THEN ln(a.value / b.value) END AS ln_ratio
FROM metrics a
JOIN metrics b ON a.campaign_id = b.campaign_id AND a.scenario = b.scenario AND a.level = b.level
              AND a.block = b.block AND a.phase = b.phase AND a.metric = b.metric
              AND a.statistic = b.statistic AND a.arm <> b.arm;

-- ---------------------------------------------------------------- are the tokens the same
-- Output of every answered request: token ids where the server gives them, else the text.
CREATE OR REPLACE VIEW outputs AS
SELECT q.run_id, r.campaign_id, r.scenario, r.level, r.block, r.arm, q.phase, q.session,
       COALESCE(CAST(q.output_token_ids AS VARCHAR), q.output_text) AS output
FROM requests q JOIN runs r USING (run_id)
WHERE q.outcome = 'ok' AND q.phase IN ('populate', 'measure', 'warm');

-- Sessions whose greedy output is the same, between two ways to have computed it in one block.
-- 'populate' is a recompute of the prompt, so
--   cold read against recompute:  measure against populate of one arm: restored KV is right KV
--   between arms:                 measure against measure: the patch changes no token
--   noise floor:                  populate against populate: what recompute alone repeats
-- Cannot show: which chunk was wrong; equality where the engine's numerics do not repeat (below
-- fp32 batches may differ), which is why the noise floor stands beside it.
CREATE OR REPLACE VIEW identity AS
SELECT a.campaign_id, a.scenario, a.level, a.block, a.arm, a.phase,
       b.arm AS other_arm, b.phase AS other_phase, COUNT(*) AS n,
       COUNT(*) FILTER (WHERE a.output = b.output) AS identical
FROM outputs a
JOIN outputs b ON a.campaign_id = b.campaign_id AND a.scenario = b.scenario
              AND a.level = b.level AND a.block = b.block AND a.session = b.session
WHERE (a.arm = b.arm AND a.phase = 'measure' AND b.phase = 'populate')
   OR (a.arm < b.arm AND a.phase = b.phase AND a.phase IN ('measure', 'populate'))
GROUP BY ALL;
