-- What the KV device did in the window that counts: the cold read of every run, by its samples
-- before and after the phase, and the save of a checkpoint; one row a run, window and host.
--   bytes, n       moved in the sample intervals that touch the window, and how many these are
--   active_ns      end of the last - begin of the first of them that moved something
--   busy_bytes, busy_ns, n_busy   of the 1 s windows that moved more than 5 % of the ceiling (5 %:
--                  stray metadata reads stay out, a tail stays in)
--   peak_bytes_per_s, n_whole     fastest window that lasts at least 0.9 s (a shorter rest of a
--                  second would be a rate of its own), and how many last so long
-- A window holds whole sample intervals, counted from its origin: nothing is interpolated.
CREATE OR REPLACE TABLE device_activity AS
WITH wanted AS MATERIALIZED (
    SELECT *, row_number() OVER () AS cell
    FROM (
        SELECT k.run_id, 'read' AS moves, 'read_sectors' AS counter, k.host,
               r.kv_device AS device, k.before_ns AS origin_ns, k.before_ns, k.after_ns
        FROM kv_device_reads k JOIN runs r USING (run_id)
        WHERE k.phase = 'measure' AND k.reason IS NULL
        UNION ALL
        SELECT s.run_id, 'write', d.counter, d.host, d.device, s.begin_ns,
               coalesce(max(d.mono_ns) FILTER (d.mono_ns <= s.begin_ns), s.begin_ns),
               coalesce(min(d.mono_ns) FILTER (d.mono_ns >= s.end_ns), s.end_ns)
        FROM saves s JOIN runs r USING (run_id)
        JOIN disk_counters d ON d.run_id = s.run_id AND d.host = r.kv_host
                            AND d.device = r.kv_device
        WHERE s.reason IS NULL AND d.counter = 'write_sectors'
        GROUP BY s.run_id, d.counter, d.host, d.device, s.begin_ns, s.end_ns
    )
),
-- As in device_series, of these devices and counters in these windows alone.
steps AS (
    SELECT w.cell, w.origin_ns, d.mono_ns AS end_ns, lag(d.mono_ns) OVER s AS begin_ns,
           512 * (d.value - lag(d.value) OVER s) AS bytes
    FROM wanted w
    JOIN disk_counters d ON d.run_id = w.run_id AND d.host = w.host AND d.device = w.device
                        AND d.counter = w.counter AND d.mono_ns BETWEEN w.before_ns AND w.after_ns
    WHERE d.counter IN ('read_sectors', 'write_sectors')
      -- Of both sides, so that it is asked after the join: asked of the samples alone it would read
      -- the value of every counter.
      AND d.value + w.cell IS NOT NULL
    WINDOW s AS (PARTITION BY w.cell, d.epoch ORDER BY d.mono_ns)
    QUALIFY begin_ns IS NOT NULL
),
seconds AS (
    SELECT cell, (end_ns - origin_ns - 1) // 1000000000 AS second_no, count(*) AS n,
           sum(bytes) AS bytes, sum(end_ns - begin_ns) AS elapsed_ns,
           min(begin_ns) FILTER (bytes > 0) AS first_ns, max(end_ns) FILTER (bytes > 0) AS last_ns
    FROM steps GROUP BY cell, second_no
),
judged AS (
    SELECT w.run_id, w.moves, s.*, per_s(s.bytes, s.elapsed_ns) AS rate,
           s.elapsed_ns >= 900000000 AS whole, rate > 0.05 * c.bytes_per_s AS busy
    FROM seconds s JOIN wanted w USING (cell)
    JOIN calibrated c ON c.run_id = w.run_id
                     AND c.name = CASE w.moves WHEN 'read' THEN 'ceiling' ELSE 'write_ceiling' END
)
SELECT run_id, moves, CAST(sum(n) AS BIGINT) AS n, sum(bytes) AS bytes,
       max(last_ns) - min(first_ns) AS active_ns,
       count(*) FILTER (busy) AS n_busy, sum(bytes) FILTER (busy) AS busy_bytes,
       sum(elapsed_ns) FILTER (busy) AS busy_ns,
       count(*) FILTER (whole) AS n_whole, max(rate) FILTER (whole) AS peak_bytes_per_s
FROM judged GROUP BY run_id, moves;

--   device_read_bandwidth mean     bytes / active_ns. Cannot show: pauses inside; compare busy.
--   device_read_bandwidth busy     busy_bytes / busy_ns
--   device_read_bandwidth peak_1s  peak_bytes_per_s
--   ceiling_fraction               bandwidth / ceiling_bandwidth, no unit.
CREATE OR REPLACE TABLE bandwidth AS
WITH speeds AS (
    SELECT k.run_id, coalesce(a.n, 0) AS n, coalesce(a.n_busy, 0) AS n_busy,
           coalesce(a.n_whole, 0) AS n_whole, per_s(a.bytes, a.active_ns) AS mean,
           per_s(a.busy_bytes, a.busy_ns) AS busy, a.peak_bytes_per_s AS peak,
           c.bytes_per_s AS ceiling, c.reason AS no_ceiling,
           coalesce(k.reason, refuse('nothing_read', a.active_ns IS NULL)) AS no_mean,
           coalesce(k.reason, c.reason, refuse('no_busy_second', a.busy_ns IS NULL)) AS no_busy,
           coalesce(k.reason, refuse('no_whole_second', a.peak_bytes_per_s IS NULL)) AS no_peak
    FROM kv_device_reads k
    JOIN calibrated c ON c.run_id = k.run_id AND c.name = 'ceiling'
    LEFT JOIN device_activity a ON a.run_id = k.run_id AND a.moves = 'read'
    WHERE k.phase = 'measure'
)
SELECT run_id, 'measure' AS phase, unnest([
    metric('device_read_bandwidth', 'mean', 'bytes/s', n, 'bytes / reading window', no_mean, mean),
    metric('device_read_bandwidth', 'busy', 'bytes/s', n_busy,
           'bytes / time of 1 s windows above 5 % of the ceiling', no_busy, busy),
    metric('device_read_bandwidth', 'peak_1s', 'bytes/s', n_whole, 'maximum of 1 s windows',
           no_peak, peak),
    metric('ceiling_fraction', 'mean', '', n, 'bytes / reading window / ceiling',
           coalesce(no_mean, no_ceiling), mean / ceiling),
    metric('ceiling_fraction', 'busy', '', n_busy,
           'bytes / time of 1 s windows above 5 % of the ceiling / ceiling', no_busy,
           busy / ceiling)], recursive := true)
FROM speeds;
