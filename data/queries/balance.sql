-- What whole devices that hold no KV read in the measured phase: where an engine's reads beyond its
-- KV can have come from. Stacks, partitions and paths would count the same bytes twice; a loop
-- device's backing file lies on one of them, and explains nothing there. NULL where none was sampled.
CREATE OR REPLACE VIEW elsewhere_reads AS
SELECT r.run_id, not_below_0(CAST(sum(d.read_bytes) AS BIGINT)
                      - CASE WHEN any_value(own.kind) = 'loop' THEN any_value(kv.read_bytes)
                             ELSE 0 END) AS read_bytes
FROM runs r
JOIN kv_device_reads kv ON kv.run_id = r.run_id AND kv.phase = 'measure'
JOIN phase_reads d ON d.run_id = r.run_id AND d.phase = 'measure' AND d.occurrence = 1
                  AND d.probe = 'disk' AND NOT (d.host = r.kv_host AND d.device = r.kv_device)
                  AND NOT list_contains(r.other_kv_devices, {'host': d.host, 'name': d.device})
JOIN device_kinds k ON k.run_id = d.run_id AND k.host = d.host AND k.device = d.device
                   AND k.kind IN ('disk', 'nvme-head')
LEFT JOIN device_kinds own ON own.run_id = r.run_id AND own.host = r.kv_host
                          AND own.device = r.kv_device
WHERE d.read_bytes IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM device_members m
                  WHERE m.run_id = d.run_id AND m.host = r.kv_host AND m.device = r.kv_device
                    AND m.host = d.host AND m.member = d.device)
GROUP BY r.run_id;

-- Bytes side by side, one row a run: what the certificate balances.
--   process_excess_bytes  process_read_bytes - device_read_bytes
--   uncovered_hit_bytes   engine_hit_bytes that the device did not read, at least 0
CREATE OR REPLACE TABLE balance AS
WITH b AS (
    PIVOT (SELECT run_id, metric, value FROM run_bytes)
    ON metric IN ('engine_hit_bytes', 'member_read_bytes', 'process_read_bytes',
                  'patch_read_bytes', 'other_kv_device_read_bytes', 'non_kv_read_bytes')
    USING any_value(value) GROUP BY run_id
)
SELECT r.campaign_id, r.arm, r.level, r.block, r.run_id, r.expected_bytes,
       b.engine_hit_bytes, k.read_bytes AS device_read_bytes, b.member_read_bytes,
       b.process_read_bytes, b.patch_read_bytes, b.other_kv_device_read_bytes,
       b.non_kv_read_bytes,
       b.process_read_bytes - k.read_bytes AS process_excess_bytes,
       not_below_0(b.engine_hit_bytes - k.read_bytes) AS uncovered_hit_bytes,
       e.read_bytes AS elsewhere_read_bytes
FROM runs r JOIN b USING (run_id)
LEFT JOIN kv_device_reads k ON k.run_id = r.run_id AND k.phase = 'measure'
LEFT JOIN elsewhere_reads e USING (run_id);
