-- What the device gives by itself, bytes/s, measured in the same run.
--   ceiling        the best of the `ceiling` rows (each bytes / elapsed)
--   serial         all bytes / all time of the `serial` rows
--   write_ceiling  the best of a checkpoint's `write_ceiling` events
-- Rows of more than one device are refused.
CREATE OR REPLACE TABLE calibrated AS
WITH rows AS (
    SELECT run_id, name, host, device, read_bytes AS bytes, elapsed_ns
    FROM calibration WHERE name IN ('ceiling', 'serial')
    UNION ALL
    SELECT run_id, name, '', '', fact_n(detail, 'write_bytes'), fact_n(detail, 'elapsed_ns')
    FROM events WHERE name = 'write_ceiling' AND json_valid(detail)
),
speeds AS (
    SELECT run_id, name, count(*) AS n, count(DISTINCT (host, device)) AS devices,
           max(per_s(bytes, elapsed_ns)) AS best, per_s(sum(bytes), sum(elapsed_ns)) AS pooled
    FROM rows WHERE bytes > 0 AND elapsed_ns > 0 GROUP BY run_id, name
)
SELECT r.run_id, w.name, coalesce(s.n, 0) AS n,
       coalesce(refuse('not_calibrated', s.n IS NULL, 'name=' || w.name),
                refuse('several_devices_calibrated', s.devices > 1, 'n=' || s.devices)) AS reason,
       unless(reason, CASE w.name WHEN 'serial' THEN s.pooled ELSE s.best END) AS bytes_per_s
FROM runs r CROSS JOIN (VALUES ('ceiling'), ('serial'), ('write_ceiling')) w(name)
LEFT JOIN speeds s ON s.run_id = r.run_id AND s.name = w.name
WHERE w.name <> 'write_ceiling' OR r.job = 'checkpoint';

-- ceiling_bandwidth, serial_bandwidth, write_ceiling_bandwidth
CREATE OR REPLACE VIEW calibrated_metrics AS
SELECT run_id, 'calibration' AS phase, unnest(metric(
    name || '_bandwidth', '', 'bytes/s', n,
    CASE name WHEN 'serial' THEN 'bytes / time' ELSE 'best of its rows' END, reason, bytes_per_s))
FROM calibrated;
