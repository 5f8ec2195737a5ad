-- What the topology says of a device at the run's begin: its kind and its members.
CREATE OR REPLACE TABLE device_kinds AS
SELECT run_id, host, device, arg_min(text, mono_ns) FILTER (counter = 'kind') AS kind,
       arg_min(text, mono_ns) FILTER (counter = 'members') AS members
FROM probes WHERE probe = 'topology' AND counter IN ('kind', 'members')
GROUP BY run_id, host, device;

-- One row a member of a device whose bytes are its members' bytes: a RAID, a device-mapper target,
-- an NVMe multipath head with its paths. The disk under a loop device or a partition is no member.
CREATE OR REPLACE TABLE device_members AS
SELECT run_id, host, device, kind, position, member
FROM (SELECT * EXCLUDE (members), generate_subscripts(names, 1) AS position,
             trim(unnest(names)) AS member
      FROM (SELECT *, string_split(members, ',') AS names FROM device_kinds
            WHERE kind IN ('md', 'dm', 'nvme-head')))
WHERE member <> '';

-- NVMe multipath heads whose own counters stay 0 (kernels before 6.2), with the paths that count
-- for them.
CREATE OR REPLACE TABLE silent_heads AS
WITH heads AS (SELECT * FROM device_members WHERE kind = 'nvme-head'),
counting AS (
    SELECT run_id, host, device FROM heads JOIN probes p USING (run_id, host, device)
    WHERE p.probe = 'disk' AND p.counter IN ('read_sectors', 'write_sectors') AND p.value > 0
)
SELECT run_id, host, device, member, count(*) OVER (PARTITION BY run_id, host, device) AS n_members
FROM heads ANTI JOIN counting USING (run_id, host, device);

-- Every counter of every block device, as all other views read them: one row a sample, its value
-- NULL where it did not go through. A silent head's is the sum over its paths, where all of them
-- were sampled at once; its epoch, their sum, ends with each of theirs.
CREATE OR REPLACE VIEW disk_counters AS
SELECT run_id, host, device, counter, mono_ns, coalesce(epoch, 0) AS epoch,
       CAST(value AS BIGINT) AS value
FROM probes ANTI JOIN silent_heads USING (run_id, host, device)
WHERE probe = 'disk'
UNION ALL
SELECT s.run_id, s.host, s.device, p.counter, p.mono_ns,
       CAST(sum(coalesce(p.epoch, 0)) AS BIGINT), CAST(sum(p.value) AS BIGINT)
FROM silent_heads s
JOIN probes p ON p.run_id = s.run_id AND p.host = s.host AND p.device = s.member
WHERE p.probe = 'disk' AND p.value IS NOT NULL
GROUP BY s.run_id, s.host, s.device, p.counter, p.mono_ns
HAVING count(*) = any_value(s.n_members);
