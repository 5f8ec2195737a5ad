-- What counters did in a window that somebody asks about: table macros, for rules.

-- Every counter of every probe; those of block devices as `disk_counters` has them.
CREATE OR REPLACE VIEW counters AS
SELECT run_id, 'disk' AS probe, host, device, counter, mono_ns, epoch, value FROM disk_counters
UNION ALL
SELECT run_id, probe, host, device, counter, mono_ns, coalesce(epoch, 0), value
FROM probes WHERE probe <> 'disk';

-- By how much each counter grew, from its last reading at or before a window to its first at or
-- after it; NULL when one of them is missing, an epoch ended in between, or the counter fell.
CREATE OR REPLACE MACRO growths(begin_ns, end_ns) AS TABLE
SELECT run_id, probe, host, device, counter, before_ns, after_ns,
       CASE WHEN before_epoch = after_epoch AND after_value >= before_value
            THEN CAST(after_value - before_value AS BIGINT) END AS grown
FROM (
    SELECT run_id, probe, host, device, counter,
           max(mono_ns) FILTER (mono_ns <= begin_ns) AS before_ns,
           min(mono_ns) FILTER (mono_ns >= end_ns) AS after_ns,
           arg_max(value, mono_ns) FILTER (mono_ns <= begin_ns) AS before_value,
           arg_min(value, mono_ns) FILTER (mono_ns >= end_ns) AS after_value,
           arg_max(epoch, mono_ns) FILTER (mono_ns <= begin_ns) AS before_epoch,
           arg_min(epoch, mono_ns) FILTER (mono_ns >= end_ns) AS after_epoch
    FROM counters WHERE value IS NOT NULL
    GROUP BY run_id, probe, host, device, counter
);

-- Bytes written to each block device while nothing was to be written: in the quiet_ns that end at an
-- instant, and on until another, between samples span_ns apart. Only samples inside: one before may
-- fall into the sync that made it quiet.
CREATE OR REPLACE MACRO quiet_writes(quiet_ns, quiet_end_ns, until_ns) AS TABLE
SELECT run_id, host, device, max(mono_ns) - min(mono_ns) AS span_ns,
       CAST(512 * (arg_max(value, mono_ns) - arg_min(value, mono_ns)) AS BIGINT) AS write_bytes
FROM disk_counters
WHERE counter = 'write_sectors' AND value IS NOT NULL
  AND mono_ns BETWEEN quiet_end_ns - quiet_ns AND until_ns
GROUP BY run_id, host, device;

-- Bytes written to each block device after a window, until an instant: from the sample that ends the
-- window on, as the one before it belongs to the window; NULL where one is missing or it was replaced.
CREATE OR REPLACE MACRO late_writes(end_ns, until_ns) AS TABLE
SELECT run_id, host, device,
       CASE WHEN arg_min(epoch, mono_ns) FILTER (mono_ns >= end_ns)
                 = arg_min(epoch, mono_ns) FILTER (mono_ns >= until_ns)
            THEN CAST(512 * (arg_min(value, mono_ns) FILTER (mono_ns >= until_ns)
                             - arg_min(value, mono_ns) FILTER (mono_ns >= end_ns)) AS BIGINT)
       END AS write_bytes
FROM disk_counters WHERE counter = 'write_sectors' AND value IS NOT NULL
GROUP BY run_id, host, device;

-- Samples of some block devices (`host device`) in a window, its edges included: how many steps between two of a
-- counter, of how many devices, how many of them went back or began an epoch, and the longest.
-- in_flight is a gauge: it falls as requests end.
CREATE OR REPLACE MACRO sample_steps(of_run, devices, begin_ns, end_ns) AS TABLE
SELECT count(*) AS n, count(DISTINCT (host, device)) AS n_devices,
       count(*) FILTER (value < value_before) AS n_back,
       count(*) FILTER (epoch <> epoch_before) AS n_epochs, max(mono_ns - mono_before) AS gap_ns
FROM (
    SELECT *, lag(mono_ns) OVER w AS mono_before, lag(value) OVER w AS value_before,
           lag(epoch) OVER w AS epoch_before
    FROM disk_counters
    WHERE run_id = of_run AND list_contains(devices, host || ' ' || device) AND value IS NOT NULL
      AND counter <> 'in_flight'
    WINDOW w AS (PARTITION BY host, device, counter ORDER BY mono_ns)
)
WHERE mono_before IS NOT NULL AND mono_ns > begin_ns AND mono_before < end_ns;

-- What controllers, arrays and links said of themselves in a window and slack_ns around it.
CREATE OR REPLACE MACRO states(of_run, slack_ns, begin_ns, end_ns) AS TABLE
SELECT probe, host, device, counter, count(*) AS n, count(*) FILTER (text IS NULL) AS n_lost,
       count(DISTINCT coalesce(epoch, 0)) AS epochs,
       list_sort(list_distinct(list(text))) AS words
FROM probes
WHERE run_id = of_run AND probe IN ('nvme', 'nic')
  AND mono_ns BETWEEN begin_ns - slack_ns AND end_ns + slack_ns
  AND counter IN ('state', 'address', 'transport', 'operstate', 'array_state')
GROUP BY probe, host, device, counter;

-- The fastest stretch of at least width_ns of a counter of bytes (of sectors, for a block device)
-- inside a window: bytes over the shortest such stretch from each reading on, less what was in
-- flight at its begin: that may have crossed the link before it and is counted on completion. The
-- gauge alone acquits nobody (some kernels let it wrap): at most twice as many requests are taken
-- off as the time of the completed reads says were under way on average, and at most half of those
-- that ended in the stretch; requests of more than half a second would be needed for more.
CREATE OR REPLACE MACRO fastest_stretch(
    of_run, of_probe, of_host, of_device, of_counter, begin_ns, end_ns, width_ns) AS TABLE
WITH readings AS (
    SELECT mono_ns, max(value) FILTER (counter = of_counter) AS total,
           coalesce(max(value) FILTER (counter = 'in_flight'), 0) AS in_flight,
           max(value) FILTER (counter = 'reads') AS reads,
           max(value) FILTER (counter = 'read_ms') AS read_ms
    FROM counters
    WHERE run_id = of_run AND probe = of_probe AND host = of_host AND device = of_device
      AND value IS NOT NULL AND counter IN (of_counter, 'in_flight', 'reads', 'read_ms')
      AND mono_ns BETWEEN begin_ns AND end_ns
    GROUP BY mono_ns
),
known AS (
    SELECT * REPLACE (total * CASE of_probe WHEN 'disk' THEN 512 ELSE 1 END AS total)
    FROM readings WHERE total IS NOT NULL
),
pairs AS (
    SELECT b.mono_ns - a.mono_ns AS span_ns, b.total - a.total AS moved, b.reads - a.reads AS ended,
           2 * (b.read_ms - a.read_ms) * 1e6 / span_ns AS plausible,
           greatest(least(a.in_flight, coalesce(plausible, 0), ended / 2), 0) AS under_way,
           CASE WHEN ended > 0 THEN under_way * moved / ended ELSE 0 END AS carried
    FROM known a
    -- A window shorter than the width is one stretch itself.
    ASOF JOIN (SELECT *, mono_ns - least(width_ns, end_ns - begin_ns) AS start_ns FROM known) b
        ON a.mono_ns <= b.start_ns
)
SELECT CAST(greatest(moved - carried, 0) AS BIGINT) AS moved_bytes, span_ns
FROM pairs WHERE span_ns > 0
ORDER BY (moved - carried) / span_ns DESC LIMIT 1;

-- By how much a counter of an engine grew over a window, its series summed: from the last page
-- before it to the first after it, both fetched while no other phase ran.
CREATE OR REPLACE MACRO engine_growth(of_run, of_instance, of_counter, begin_ns, end_ns) AS TABLE
WITH marks AS (
    SELECT coalesce(max(mono_ns) FILTER (mono_ns < begin_ns AND ends_with(name, '_end')), 0)
               AS since_ns,
           coalesce(min(mono_ns) FILTER (mono_ns > end_ns AND ends_with(name, '_begin')),
                    CAST(9223372036854775807 AS BIGINT)) AS until_ns
    FROM events WHERE run_id = of_run
),
pages AS (
    SELECT mono_ns, sum(value) AS total, max(coalesce(epoch, 0)) AS epoch
    FROM probes
    WHERE run_id = of_run AND probe = 'engine' AND device = of_instance AND value IS NOT NULL
      AND regexp_extract(counter, '^[^{]*') IN (of_counter, of_counter || '_total')
    GROUP BY mono_ns
),
edges AS (
    SELECT arg_max(total, mono_ns) FILTER (mono_ns BETWEEN since_ns AND begin_ns) AS before_total,
           arg_min(total, mono_ns) FILTER (mono_ns BETWEEN end_ns AND until_ns) AS after_total,
           arg_max(epoch, mono_ns) FILTER (mono_ns BETWEEN since_ns AND begin_ns) AS before_epoch,
           arg_min(epoch, mono_ns) FILTER (mono_ns BETWEEN end_ns AND until_ns) AS after_epoch
    FROM pages CROSS JOIN marks
)
SELECT CASE WHEN before_epoch = after_epoch
            THEN CAST(after_total - before_total AS BIGINT) END AS grown
FROM edges;

-- KV bytes that the requests of a control phase retrieved between two instants.
CREATE OR REPLACE MACRO control_hits(of_run, begin_ns, end_ns) AS TABLE
SELECT CAST(sum(kv_bytes(e.retrieved_tokens, r.chunk_tokens, r.chunk_bytes)) AS BIGINT) AS hit_bytes
FROM engine_requests e JOIN requests q USING (run_id, request_id) JOIN runs r USING (run_id)
WHERE e.run_id = of_run AND q.phase = 'control' AND q.sent_ns BETWEEN begin_ns AND end_ns;

-- What processes read of files in a window, those whose counters are known there.
CREATE OR REPLACE MACRO file_reads(of_run, begin_ns, end_ns) AS TABLE
SELECT CAST(sum(grown) AS BIGINT) AS read_bytes FROM growths(begin_ns, end_ns)
WHERE run_id = of_run AND probe = 'process' AND counter = 'rchar';
