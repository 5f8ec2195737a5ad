-- predicted_ttft p50 and max, ns: warm TTFT p50 of the same run + load_bytes (p50, max over the
-- measured requests, see `admissions`) / the bandwidth its reader can have: the ceiling where it
-- reads in parallel; where it reads serially the serial bandwidth of each engine, side by side,
-- until the ceiling. Bytes come after one another from one device. Any failed warm request voids
-- it: the others were warm beside fewer neighbours. Cannot show: overlap of loading and answering.
CREATE OR REPLACE VIEW prediction AS
WITH loads AS (
    SELECT run_id, v.statistic, count(*) AS n, count(*) - count(load_bytes) AS n_untaken,
           CASE v.statistic WHEN 'p50' THEN quantile_disc(load_bytes, 0.5)
                            ELSE max(load_bytes) END AS load_bytes
    FROM admissions CROSS JOIN (VALUES ('p50'), ('max')) v(statistic)
    GROUP BY run_id, v.statistic
),
warm AS (
    SELECT run_id, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed
    FROM requests WHERE phase = 'warm' GROUP BY run_id
)
SELECT r.run_id, 'measure' AS phase, unnest(metric(
    'predicted_ttft', b.statistic, 'ns', b.n,
    'warm ttft p50 + ' || b.statistic || ' of bytes until loaded / calibrated bandwidth',
    coalesce(refuse('reader_unknown', r.reads IS NULL, 'role=' || coalesce(r.role, 'none')),
             s.reason || ' on="warm ttft"', refuse_some('warm_requests_failed', w.n_failed, w.n),
             refuse_some('requests_without_lookup', b.n_untaken, b.n), c.reason),
    s.value + b.load_bytes
        / CASE r.reads WHEN 'serial' THEN least(len(r.instances) * c.bytes_per_s, k.bytes_per_s)
                       ELSE c.bytes_per_s END * 1e9))
FROM runs r
JOIN loads b USING (run_id)
LEFT JOIN warm w USING (run_id)
JOIN request_statistics s ON s.run_id = r.run_id AND s.phase = 'warm' AND s.metric = 'ttft'
                         AND s.statistic = 'p50'
JOIN calibrated c ON c.run_id = r.run_id
                 AND c.name = CASE r.reads WHEN 'serial' THEN 'serial' ELSE 'ceiling' END
JOIN calibrated k ON k.run_id = r.run_id AND k.name = 'ceiling';
