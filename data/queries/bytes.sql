-- All byte counts of a run's measured phase, each with its reason when it is NULL.
--   process_read_bytes          read_bytes of the engine's process tree; n is its processes.
--                               The kernel adds a reaped child's bytes to its parent. A tree that
--                               the site names for several instances is counted once.
--   other_kv_device_read_bytes  of the devices other arms keep their KV on
--   member_read_bytes           of the KV device's members
--   non_kv_read_bytes           of the recorded devices that hold no KV: libraries read again
--                               after a drop. Partitions and paths of a device are not counted
--                               beside it. Cannot show: reads of a loop device's backing disk apart
--                               from others on that disk.
--   engine_hit_bytes            hit_bytes of the measured requests; refused when one of them has no
--                               lookup line. n is the requests.
--   patch_read_bytes            bytes by the patch's own read lines; n is the lines. Refused when
--                               the log has no line of a loaded patch.
CREATE OR REPLACE TABLE run_bytes AS
WITH reads AS (
    SELECT * FROM phase_reads WHERE phase = 'measure' AND occurrence = 1
),
wanted AS (
    SELECT DISTINCT m.run_id, 'member_read_bytes' AS metric, m.host, m.member AS device
    FROM device_members m JOIN runs r USING (run_id)
    WHERE m.host = r.kv_host AND m.device = r.kv_device
    UNION ALL
    SELECT run_id, 'other_kv_device_read_bytes', other.host, other.name
    FROM (SELECT run_id, unnest(other_kv_devices) AS other FROM runs)
    UNION ALL
    SELECT DISTINCT d.run_id, 'non_kv_read_bytes', d.host, d.device
    FROM reads d JOIN runs r USING (run_id)
    LEFT JOIN device_kinds k ON k.run_id = d.run_id AND k.host = d.host AND k.device = d.device
    WHERE d.probe = 'disk' AND NOT (d.host = r.kv_host AND d.device = r.kv_device)
      AND NOT list_contains(r.other_kv_devices, {'host': d.host, 'name': d.device})
      AND coalesce(k.kind, '') NOT IN ('partition', 'nvme-path')
      AND NOT EXISTS (SELECT 1 FROM device_members m
                      WHERE m.run_id = d.run_id AND m.host = d.host AND m.member = d.device)
),
disks AS (
    SELECT w.run_id, w.metric, count(DISTINCT (w.host, w.device)) AS n, sum(d.read_bytes) AS read_bytes,
           min(coalesce(refuse('no_samples_around', d.device IS NULL), d.reason)
               || ' on=' || w.device) AS reason
    FROM wanted w
    LEFT JOIN reads d ON d.run_id = w.run_id AND d.host = w.host AND d.device = w.device
                     AND d.probe = 'disk'
    GROUP BY w.run_id, w.metric
),
processes AS (
    SELECT run_id, 'process_read_bytes' AS metric, count(*) AS n, sum(read_bytes) AS read_bytes,
           min(reason || ' on=' || device) AS reason
    FROM (SELECT run_id, min(device) AS device, max(read_bytes) AS read_bytes,
                 min(reason) AS reason
          FROM reads WHERE probe = 'process'
          GROUP BY run_id, host, regexp_replace(device, '^[^:]*:', ''))
    GROUP BY run_id
),
hits AS (
    SELECT run_id, 'engine_hit_bytes' AS metric, n, hit_bytes AS read_bytes,
           refuse_some('requests_without_lookup', n - n_hit, n) AS reason
    FROM engine_sums WHERE phase = 'measure' AND instance IS NULL
),
patch AS (
    SELECT l.run_id, 'patch_read_bytes' AS metric, coalesce(sum(p.n), 0) AS n,
           coalesce(sum(p.read_bytes), 0) AS read_bytes, CAST(NULL AS VARCHAR) AS reason
    FROM (SELECT DISTINCT run_id FROM engine_log WHERE kind = 'patch_loaded') l
    LEFT JOIN patch_sums p ON p.run_id = l.run_id AND p.phase = 'measure'
    GROUP BY l.run_id
),
found AS (
    FROM disks UNION ALL FROM processes UNION ALL FROM hits UNION ALL FROM patch
)
SELECT r.run_id, 'measure' AS phase, unnest(metric(
    w.metric, '', 'bytes', coalesce(f.n, 0), w.estimator,
    CASE WHEN f.run_id IS NULL THEN w.absent ELSE f.reason END, f.read_bytes))
FROM runs r CROSS JOIN (VALUES
    ('process_read_bytes', refuse('no_process_samples', true), 'counter difference'),
    ('other_kv_device_read_bytes', refuse('no_other_kv_device', true), 'counter difference'),
    ('member_read_bytes', refuse('no_members', true), 'counter difference'),
    ('non_kv_read_bytes', refuse('no_device_without_kv', true), 'counter difference'),
    ('engine_hit_bytes', refuse('no_requests', true), 'hit tokens by lookup lines'),
    ('patch_read_bytes', refuse('patch_not_loaded', true), 'bytes by the patch''s read lines'))
    w(metric, absent, estimator)
LEFT JOIN found f ON f.run_id = r.run_id AND f.metric = w.metric;
