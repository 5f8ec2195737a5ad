-- One row a measured run and engine instance: what it asked for, found and read.
--   load_ns        its first request sent - its last first content: how long it waited for KV
--   bytes_per_s    hit_bytes / load_ns: the share of the device one engine got
-- Cannot show: which of two engines waited for the other; they share one device and one clock.
CREATE OR REPLACE TABLE instance_reads AS
WITH mine AS (SELECT run_id, unnest(instances) AS instance FROM runs),
asked AS (
    SELECT run_id, instance, count(*) AS n, count(*) FILTER (NOT ok) AS n_failed,
           quantile_disc(or_forever(ok, ttft_ns), 0.5) AS ttft_p50_ns,
           max(or_forever(ok, ttft_ns)) AS ttft_max_ns,
           max(sent_ns + ttft_ns) - min(sent_ns) AS load_ns
    FROM request_times WHERE phase = 'measure' GROUP BY run_id, instance
),
found AS (
    SELECT run_id, instance, sum_all(hit_bytes) AS hit_bytes
    FROM engine_requests WHERE phase = 'measure' GROUP BY run_id, instance
),
taken AS (
    SELECT run_id, split_part(device, ':', 1) AS instance,
           sum_all(read_bytes) AS process_read_bytes
    FROM phase_reads WHERE probe = 'process' AND phase = 'measure' AND occurrence = 1
    GROUP BY ALL
)
SELECT m.run_id, m.instance, coalesce(a.n, 0) AS n, a.n_failed, a.ttft_p50_ns, a.ttft_max_ns,
       a.load_ns, f.hit_bytes, t.process_read_bytes,
       CASE WHEN a.n_failed = 0 AND a.load_ns > 0 THEN per_s(f.hit_bytes, a.load_ns) END
           AS bytes_per_s
FROM mine m
LEFT JOIN asked a USING (run_id, instance)
LEFT JOIN found f USING (run_id, instance)
LEFT JOIN taken t USING (run_id, instance);

-- fairness jain: (sum of x)^2 / (n * sum of x^2) over the instances' bytes_per_s: 1 when all got
-- the same, 1/n when one got everything (Jain, Chiu, Hawe 1984). Needs two instances.
CREATE OR REPLACE VIEW fairness AS
WITH rates AS (
    SELECT run_id, count(*) AS n, count(bytes_per_s) AS known, sum(bytes_per_s) AS total,
           sum(bytes_per_s ** 2) AS squares
    FROM instance_reads GROUP BY run_id
)
SELECT run_id, 'measure' AS phase, unnest(metric(
    'fairness', 'jain', '', n, 'Jain index over instances',
    coalesce(refuse('one_instance', n < 2), refuse_some('instances_without_rate', n - known, n)),
    total ** 2 / (n * squares)))
FROM rates;

-- Campaigns whose runs differ in the number of engines: a run of n instances against the run of one
-- instance in its own block, same patch state, each instance under the same load.
--   speedup               aggregate device_read_bandwidth (mean) / that of one instance
--   efficiency            speedup / n
--   predicted_speedup     min(n * one instance, device ceiling) / one instance
--   of_predicted          speedup / predicted_speedup
-- Cannot show: what a larger device would have given; efficiency falls by definition once one
-- instance alone reaches the ceiling, so ceiling_fraction stands beside it.
CREATE OR REPLACE VIEW scaling AS
WITH cells AS (
    SELECT r.run_id, r.campaign_id, r.block, r.patch_expected, len(r.instances) AS n_instances,
           r.concurrency, b.value AS bytes_per_s, b.reason AS no_bandwidth,
           c.bytes_per_s AS ceiling_bytes_per_s, c.reason AS no_ceiling,
           min(n_instances) OVER (PARTITION BY r.campaign_id) AS fewest,
           max(n_instances) OVER (PARTITION BY r.campaign_id) AS most
    FROM runs r
    JOIN bandwidth b ON b.run_id = r.run_id AND b.metric = 'device_read_bandwidth'
                    AND b.statistic = 'mean'
    JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    WHERE r.kind = 'kv'
    QUALIFY fewest < most
)
SELECT m.run_id, m.n_instances, m.bytes_per_s, o.run_id AS one_run_id,
       o.bytes_per_s AS one_bytes_per_s, m.ceiling_bytes_per_s,
       m.bytes_per_s / o.bytes_per_s AS speedup,
       speedup / m.n_instances AS efficiency,
       least(m.n_instances * o.bytes_per_s, greatest(m.ceiling_bytes_per_s, o.bytes_per_s))
           / o.bytes_per_s AS predicted_speedup,
       speedup / predicted_speedup AS of_predicted,
       coalesce(refuse('no_run_of_one_instance', o.run_id IS NULL), m.no_bandwidth, o.no_bandwidth,
                m.no_ceiling) AS reason
FROM cells m
LEFT JOIN cells o ON o.campaign_id = m.campaign_id AND o.block = m.block AND o.n_instances = 1
                 AND o.patch_expected IS NOT DISTINCT FROM m.patch_expected
                 AND o.concurrency * m.n_instances = m.concurrency;

CREATE OR REPLACE VIEW scaling_metrics AS
SELECT run_id, 'measure' AS phase, unnest([
    metric('scaling_speedup', '', 'x', n_instances, 'aggregate bandwidth / that of one instance',
           reason, speedup),
    metric('scaling_efficiency', '', '', n_instances, 'speedup / instances', reason, efficiency),
    metric('predicted_scaling_speedup', '', 'x', n_instances,
           'min(n * one instance, ceiling) / one instance', reason, predicted_speedup),
    metric('scaling_of_predicted', '', 'x', n_instances, 'speedup / predicted speedup',
           reason, of_predicted)], recursive := true)
FROM scaling;
