-- The numbers the certificate of a run compares, from raw counters; over tables.sql and metrics.sql.
--
-- One row a run, rule and quantity. The comparison itself, with its thresholds and what missing
-- evidence means, is `r8 certificate RUN` and `r8 explain RULE`: this view is for looking deeper.
CREATE OR REPLACE VIEW certificate_numbers AS
WITH durable AS (
    SELECT run_id, arg_max(detail, mono_ns) AS detail FROM events
    WHERE name = 'durable' GROUP BY run_id
),
dropped AS (
    SELECT run_id, arg_max(detail, mono_ns) AS detail FROM events
    WHERE name = 'drop_end' GROUP BY run_id
),
cache AS (
    SELECT run_id, moment, count(*) AS files, sum(size_bytes) AS size_bytes,
           sum(resident_bytes) AS resident_bytes,
           count(*) FILTER (resident_bytes > 0.01 * size_bytes) AS files_above
    FROM residency GROUP BY run_id, moment
),
tokens AS (
    SELECT run_id, min(hit_tokens) AS least, max(hit_tokens) AS most,
           max(computed_tokens) AS computed
    FROM engine_requests WHERE phase = 'measure' GROUP BY run_id
),
lag AS (
    SELECT run_id, max(send_lag_ns) AS worst_ns FROM request_times
    WHERE phase = 'measure' GROUP BY run_id
),
epochs AS (
    SELECT p.run_id, count(DISTINCT p.epoch) AS n
    FROM probes p JOIN phases w ON w.run_id = p.run_id AND w.phase = 'measure'
    WHERE p.probe = 'disk' AND p.mono_ns BETWEEN w.begin_ns AND w.end_ns GROUP BY p.run_id
),
warm AS (
    -- The block's warm control: a session of its own, its files in the page cache.
    SELECT r.run_id, r.read_bytes, p.begin_ns, p.end_ns
    FROM phases p JOIN phase_reads r USING (run_id, phase, occurrence) JOIN runs u USING (run_id)
    WHERE p.phase = 'control' AND r.probe = 'disk' AND r.device = u.kv_device
      AND json_valid(p.detail) AND json_extract_string(p.detail, '$.control') = 'warm_read'
),
warm_hits AS (
    SELECT w.run_id, sum(e.retrieved_tokens) AS tokens
    FROM warm w JOIN requests q ON q.run_id = w.run_id AND q.phase = 'control'
        AND q.sent_ns BETWEEN w.begin_ns AND w.end_ns
    JOIN engine_requests e ON e.run_id = q.run_id AND e.request_id = q.request_id
    GROUP BY w.run_id
)
SELECT run_id, 'C2' AS rule_id, 'KV files written' AS quantity,
       CAST(json_extract_string(detail, '$.files') AS DOUBLE) AS value, 'files' AS unit
FROM durable
UNION ALL
SELECT run_id, 'C2', 'KV files expected',
       CAST(json_extract_string(detail, '$.expected_files') AS DOUBLE), 'files' FROM durable
UNION ALL
SELECT run_id, 'C3', 'return code of the drop',
       CAST(json_extract_string(detail, '$.rc') AS DOUBLE), '' FROM dropped
UNION ALL
SELECT run_id, 'C3', 'KV files above 1 % resident after the drop', CAST(files_above AS DOUBLE),
       'files' FROM cache WHERE moment = 'after_drop'
UNION ALL
SELECT run_id, 'C3', 'KV bytes resident after the drop', CAST(resident_bytes AS DOUBLE), 'bytes'
FROM cache WHERE moment = 'after_drop'
UNION ALL
SELECT run_id, 'C4', 'device bytes / engine hit bytes',
       device_read_bytes / nullif(engine_hit_bytes, 0), '' FROM balance
UNION ALL
SELECT run_id, 'C4', 'process bytes / device bytes',
       process_read_bytes / nullif(device_read_bytes, 0), '' FROM balance
UNION ALL
SELECT run_id, 'C4', 'member bytes / device bytes',
       member_read_bytes / nullif(device_read_bytes, 0), '' FROM balance
UNION ALL
SELECT run_id, 'C5', 'other KV devices'' bytes / engine hit bytes',
       other_kv_device_read_bytes / nullif(engine_hit_bytes, 0), '' FROM balance
UNION ALL
SELECT run_id, 'C6', 'fewest hit tokens of a request', CAST(least AS DOUBLE), 'tokens' FROM tokens
UNION ALL
SELECT run_id, 'C6', 'hit tokens planned a request', CAST(hit_tokens_per_session AS DOUBLE),
       'tokens' FROM runs
UNION ALL
SELECT run_id, 'C6', 'most tokens in the engine''s own prefix cache', CAST(computed AS DOUBLE),
       'tokens' FROM tokens
UNION ALL
SELECT run_id, 'C8', 'epochs of block device counters in the window', CAST(n AS DOUBLE), ''
FROM epochs
UNION ALL
SELECT run_id, 'C9', 'fastest second / device ceiling',
       (SELECT any_value(b.value) FROM bandwidth b WHERE b.run_id = c.run_id
        AND b.metric = 'device_read_bandwidth' AND b.statistic = 'peak_1s') / c.bytes_per_s, ''
FROM calibrated c WHERE c.name = 'ceiling'
UNION ALL
SELECT run_id, 'C10', 'worst send lag', CAST(worst_ns AS DOUBLE), 'ns' FROM lag
UNION ALL
SELECT run_id, 'C11', 'patch bytes / expected bytes', patch_read_bytes / expected_hit_bytes, ''
FROM balance
UNION ALL
SELECT run_id, 'N1', 'device bytes of the warm control / its hit bytes',
       w.read_bytes / nullif(h.tokens * r.chunk_bytes / r.chunk_tokens, 0), ''
FROM warm w JOIN warm_hits h USING (run_id) JOIN runs r USING (run_id)
UNION ALL
SELECT run_id, 'Q1', 'failed requests', value, 'requests'
FROM phase_rates WHERE phase = 'measure' AND metric = 'n_failed';
