-- Bytes read in every phase by every block device and every engine process: the first sample at or
-- after the phase's end less the last sample at or before its begin. A process that starts inside
-- the phase counts from 0. One that ends inside it has no last reading: where it was waited for by a
-- process that is watched too (its row `exited`, or a worker that adopts orphans), the kernel has
-- added all it ever read to that one, and its own row takes away what it had read before the phase,
-- so that sums over a tree hold; else it is refused.
-- Cannot show: what a process read through mmap of another file system's cache, or network reads.
CREATE OR REPLACE TABLE phase_reads AS
WITH adopters AS (
    SELECT run_id, fact(detail, 'worker') AS worker,
           bool_and(coalesce(fact(detail, 'reaps_orphans'), '') = 'true') AS adopts
    FROM events WHERE name = 'worker_started' AND json_valid(detail) GROUP BY ALL
),
readings AS (
    SELECT run_id, 'disk' AS probe, host, device, mono_ns, epoch, 512 * value AS total_bytes
    FROM disk_counters WHERE value IS NOT NULL AND counter = 'read_sectors'
    UNION ALL
    SELECT run_id, probe, host, device, mono_ns, coalesce(epoch, 0), CAST(value AS BIGINT)
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
               AND coalesce(a.adopts, false)) AS waited_for
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
        after_ns IS NULL AND probe = 'process' AND coalesce(x.waited_for, false) AS folded,
        CASE WHEN NOT folded THEN coalesce(
            refuse('process_ended_inside', after_ns IS NULL AND probe = 'process'),
            refuse('no_sample_after', after_ns IS NULL),
            refuse('no_sample_before', before_ns IS NULL AND NOT born_inside),
            refuse('counter_regressed', before_epoch <> after_epoch OR after_bytes < before_bytes))
        END AS reason
    FROM edges e LEFT JOIN exits x USING (run_id, host, device)
    -- Processes that ended before the phase, or were born after it, had no part in it.
    WHERE NOT (probe = 'process' AND (last_ns < begin_ns OR first_ns > end_ns))
)
SELECT run_id, phase, occurrence, probe, host, device, before_ns, after_ns,
       n_inside + CAST(before_ns IS NOT NULL AS BIGINT) + CAST(after_ns IS NOT NULL AS BIGINT) AS n,
       unless(reason, CASE WHEN folded THEN 0 ELSE after_bytes END - coalesce(before_bytes, 0))
           AS read_bytes, reason
FROM judged;

-- What the run's KV device did in a phase; one row a run and phase of `measure` and `warm`.
-- Several occurrences are refused.
CREATE OR REPLACE TABLE kv_device_reads AS
WITH found AS (
    SELECT w.run_id, w.phase, count(d.device) AS hits, any_value(d.host) AS host,
           any_value(d.before_ns) AS before_ns, any_value(d.after_ns) AS after_ns,
           any_value(d.n) AS n, any_value(d.read_bytes) AS read_bytes,
           any_value(d.reason) AS reason
    FROM measured_phases w JOIN runs r USING (run_id)
    LEFT JOIN phase_reads d ON d.run_id = r.run_id AND d.phase = w.phase AND d.probe = 'disk'
                           AND d.host = r.kv_host AND d.device = r.kv_device
    GROUP BY w.run_id, w.phase
)
SELECT run_id, phase, host, before_ns, after_ns, coalesce(n, 0) AS n,
       CASE WHEN hits = 1 THEN read_bytes END AS read_bytes,
       coalesce(refuse('no_samples_around', hits = 0),
                refuse('phase_not_unique', hits > 1, 'n=' || hits), reason) AS reason
FROM found;

-- device_read_bytes of the KV device, as phase_reads. Cannot show: who read them.
CREATE OR REPLACE VIEW device_bytes AS
SELECT run_id, phase, unnest(metric(
    'device_read_bytes', '', 'bytes', n, 'counter difference', reason, read_bytes))
FROM kv_device_reads;
