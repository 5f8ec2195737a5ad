-- What happened when, one long table a person can plot.
--
-- Times are ns since the run's first measure_begin, negative before it. Nothing is interpolated: a
-- rate belongs to the whole interval between two samples, a count to the instant it changed.

-- The instant every timeline of a run counts from.
CREATE OR REPLACE VIEW timeline_zero AS
SELECT run_id, begin_ns AS zero_ns FROM phases WHERE phase = 'measure' AND occurrence = 1;

CREATE OR REPLACE VIEW timeline_phases AS
SELECT p.run_id, p.phase, p.occurrence, p.begin_ns - z.zero_ns AS begin_ns,
       p.end_ns - z.zero_ns AS end_ns
FROM phases p JOIN timeline_zero z USING (run_id);

-- Requests in flight: +1 when the first byte is sent, -1 when the stream ended (a failed request,
-- at the last instant it has). Cannot show: requests the client held back.
CREATE OR REPLACE VIEW timeline_in_flight AS
WITH steps AS (
    SELECT run_id, sent_ns AS at_ns, 1 AS step FROM requests WHERE sent_ns IS NOT NULL
    UNION ALL
    SELECT run_id, coalesce(done_ns, last_content_ns, first_byte_ns, sent_done_ns, sent_ns), -1
    FROM requests WHERE sent_ns IS NOT NULL
)
SELECT run_id, at_ns,
       CAST(sum(sum(step)) OVER (PARTITION BY run_id ORDER BY at_ns) AS BIGINT) AS in_flight
FROM steps GROUP BY run_id, at_ns;

-- One row a device and sample: bytes since the sample before (512-byte units of the kernel) and
-- their rate. A regressed counter or a replaced device starts a new epoch and is never bridged.
CREATE OR REPLACE VIEW device_series AS
WITH wide AS (
    SELECT run_id, host, device, mono_ns, max(epoch) AS epoch,
           max(value) FILTER (counter = 'read_sectors') AS read_sectors,
           max(value) FILTER (counter = 'write_sectors') AS write_sectors
    FROM disk_counters
    WHERE value IS NOT NULL AND counter IN ('read_sectors', 'write_sectors')
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
SELECT *, per_s(read_bytes, end_ns - begin_ns) AS read_bytes_per_s,
       per_s(write_bytes, end_ns - begin_ns) AS write_bytes_per_s
FROM steps
WHERE begin_ns IS NOT NULL;

-- Bytes received by a network adapter between two samples, by the best counter it has.
CREATE OR REPLACE VIEW nic_series AS
WITH best AS (
    SELECT run_id, host, device, arg_min(counter, preference) AS counter
    FROM receive_counters GROUP BY run_id, host, device
),
steps AS (
    SELECT p.run_id, p.host, p.device, p.counter, p.mono_ns AS end_ns,
           lag(p.mono_ns) OVER s AS begin_ns, 
           CAST(p.value - lag(p.value) OVER s AS BIGINT) AS received_bytes
    FROM probes p JOIN best b USING (run_id, host, device, counter)
    WHERE p.probe = 'nic' AND p.value IS NOT NULL
    WINDOW s AS (PARTITION BY p.run_id, p.host, p.device, p.counter, p.epoch ORDER BY p.mono_ns)
)
SELECT *, per_s(received_bytes, end_ns - begin_ns) AS received_bytes_per_s
FROM steps WHERE begin_ns IS NOT NULL AND end_ns > begin_ns;

-- What a drawing of so many columns shows of a device, and of the adapters of a run together:
-- whole sample intervals between two instants, averaged over the column they begin in.
CREATE OR REPLACE MACRO device_columns(run, name, low_ns, high_ns, column_ns) AS TABLE
SELECT min(s.begin_ns - z.zero_ns) AS begin_ns, max(s.end_ns - z.zero_ns) AS end_ns,
       per_s(sum(s.read_bytes), sum(s.end_ns - s.begin_ns)) AS bytes_per_s
FROM device_series s JOIN timeline_zero z USING (run_id)
WHERE s.run_id = run AND s.device = name
  AND s.begin_ns - z.zero_ns >= low_ns AND s.end_ns - z.zero_ns <= high_ns
GROUP BY (s.begin_ns - z.zero_ns) // column_ns HAVING sum(s.end_ns - s.begin_ns) > 0;

CREATE OR REPLACE MACRO nic_columns(run, low_ns, high_ns, column_ns) AS TABLE
SELECT min(begin_ns) AS begin_ns, max(end_ns) AS end_ns, sum(bytes_per_s) AS bytes_per_s
FROM (
    SELECT (s.begin_ns - z.zero_ns) // column_ns AS place,
           min(s.begin_ns - z.zero_ns) AS begin_ns, max(s.end_ns - z.zero_ns) AS end_ns,
           per_s(sum(s.received_bytes), sum(s.end_ns - s.begin_ns)) AS bytes_per_s
    FROM nic_series s JOIN timeline_zero z USING (run_id)
    WHERE s.run_id = run AND s.begin_ns - z.zero_ns >= low_ns AND s.end_ns - z.zero_ns <= high_ns
    GROUP BY place, s.host, s.device
)
GROUP BY place;

-- Every series of a run in one form.
--   device_read, device_write  bytes/s of a block device between two samples
--   nic_receive                bytes/s of a network adapter between two samples
--   gpu_busy                   percent, as the driver says it. Cannot show: what it was busy with.
--   in_flight                  requests sent and not ended, from this instant on
--   first_tokens               requests that had their first content at this instant, counted up
CREATE OR REPLACE VIEW timeline AS
SELECT s.run_id, 'device_read' AS series, s.device, s.begin_ns - z.zero_ns AS begin_ns,
       s.end_ns - z.zero_ns AS end_ns, s.read_bytes_per_s AS value, 'bytes/s' AS unit
FROM device_series s JOIN timeline_zero z USING (run_id)
UNION ALL
SELECT s.run_id, 'device_write', s.device, s.begin_ns - z.zero_ns, s.end_ns - z.zero_ns,
       s.write_bytes_per_s, 'bytes/s'
FROM device_series s JOIN timeline_zero z USING (run_id)
UNION ALL
SELECT s.run_id, 'nic_receive', s.device, s.begin_ns - z.zero_ns, s.end_ns - z.zero_ns,
       s.received_bytes_per_s, 'bytes/s'
FROM nic_series s JOIN timeline_zero z USING (run_id)
UNION ALL
SELECT p.run_id, 'gpu_busy', p.device, p.mono_ns - z.zero_ns, p.mono_ns - z.zero_ns,
       p.value, 'percent'
FROM probes p JOIN timeline_zero z USING (run_id)
WHERE p.probe = 'gpu' AND p.counter = 'gpu_busy_percent' AND p.value IS NOT NULL
UNION ALL
SELECT f.run_id, 'in_flight', '-', f.at_ns - z.zero_ns, f.at_ns - z.zero_ns,
       CAST(f.in_flight AS DOUBLE), 'requests'
FROM timeline_in_flight f JOIN timeline_zero z USING (run_id)
UNION ALL
SELECT r.run_id, 'first_tokens', r.phase, r.first_content_ns - z.zero_ns,
       r.first_content_ns - z.zero_ns,
       CAST(row_number() OVER (PARTITION BY r.run_id, r.phase ORDER BY r.first_content_ns)
            AS DOUBLE), 'requests'
FROM requests r JOIN timeline_zero z USING (run_id)
WHERE r.first_content_ns IS NOT NULL;
