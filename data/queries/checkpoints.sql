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
--   device_write_bandwidth busy  busy_bytes / busy_ns of `device_activity`: the sustained rate,
--                                without pauses
--   write_ceiling_fraction       bandwidth / write_ceiling_bandwidth, no unit
CREATE OR REPLACE TABLE save_metrics AS
WITH found AS (
    SELECT s.run_id, s.n, s.save_ns, s.payload_bytes, s.file_bytes, s.reason AS no_save,
           c.bytes_per_s AS ceiling, c.reason AS no_ceiling, a.bytes AS write_bytes,
           per_s(a.bytes, s.save_ns) AS mean, per_s(a.busy_bytes, a.busy_ns) AS busy,
           s.file_bytes / c.bytes_per_s * 1e9 AS predicted_ns,
           coalesce(a.n, 0) AS n_steps, coalesce(a.n_busy, 0) AS n_busy,
           coalesce(no_save, refuse('no_samples_around', a.run_id IS NULL)) AS no_bytes,
           refuse('no_busy_second', a.busy_ns IS NULL) AS idle
    FROM saves s
    JOIN calibrated c ON c.run_id = s.run_id AND c.name = 'write_ceiling'
    LEFT JOIN device_activity a ON a.run_id = s.run_id AND a.moves = 'write'
)
SELECT run_id, 'measure' AS phase, unnest([
    metric('save_time', '', 'ns', n, 'last end - first begin, flushes and commit included',
           no_save, save_ns),
    metric('predicted_save_time', '', 'ns', n, 'file bytes / write ceiling',
           coalesce(no_save, no_ceiling), predicted_ns),
    metric('save_over_predicted', '', '', n, 'save time / predicted save time',
           coalesce(no_save, no_ceiling), save_ns / predicted_ns),
    metric('snapshot_bytes', '', 'bytes', n, 'sum over ranks', no_save, payload_bytes),
    metric('device_write_bytes', '', 'bytes', n_steps, 'counter difference', no_bytes, write_bytes),
    metric('write_amplification', '', '', n_steps, 'device bytes / file bytes', no_bytes,
           write_bytes / file_bytes),
    metric('device_write_bandwidth', 'mean', 'bytes/s', n_steps, 'device bytes / save time',
           no_bytes, mean),
    metric('device_write_bandwidth', 'busy', 'bytes/s', n_busy,
           'bytes / time of 1 s windows above 5 % of the write ceiling',
           coalesce(no_bytes, no_ceiling, idle), busy),
    metric('write_ceiling_fraction', 'mean', '', n, 'mean bandwidth / write ceiling',
           coalesce(no_bytes, no_ceiling), mean / ceiling),
    metric('write_ceiling_fraction', 'busy', '', n_busy, 'busy bandwidth / write ceiling',
           coalesce(no_bytes, no_ceiling, idle), busy / ceiling)], recursive := true)
FROM found;
