-- Percentiles and maxima of `samples`, failures included: ttft, tpot, itl, e2e in ns, and
-- output_tokens_per_s, the speed one reader sees: 1 / TPOT of the request. n is the number of values.
-- A percentile is the inverted CDF (quantile_disc): the smallest observed value that at least the
-- share q of the values does not exceed; pooled over instances. It is refused when n < 1 / (1 - q):
-- below that it would be the maximum under another name. So p90 needs 10 values, p99 needs 100; the
-- median needs one. The maximum is called max.
-- Cannot show: that the requests of one burst share a queue; they are no independent samples.
CREATE OR REPLACE TABLE request_statistics AS
WITH wanted(metric, statistic, min_n, unit) AS (
    VALUES ('ttft', 'p50', 1, 'ns'), ('ttft', 'p90', 10, 'ns'), ('ttft', 'p99', 100, 'ns'),
           ('ttft', 'max', 1, 'ns'), ('tpot', 'p50', 1, 'ns'), ('itl', 'p50', 1, 'ns'),
           ('e2e', 'p50', 1, 'ns'), ('e2e', 'max', 1, 'ns'),
           ('output_tokens_per_s', 'p50', 1, 'tokens/s')
),
pooled AS (
    SELECT run_id, phase, metric, count(*) AS n, count(*) - count(value) AS undefined,
           quantile_disc(value, [0.5, 0.9, 0.99]) AS p, max(value) AS maximum
    FROM samples WHERE phase IN ('measure', 'warm') GROUP BY run_id, phase, metric
)
SELECT w.run_id, w.phase, v.metric, v.statistic, v.unit, coalesce(p.n, 0) AS n,
       coalesce(refuse('no_values', p.n IS NULL),
                refuse_some('values_undefined', p.undefined, p.n),
                refuse('too_few_values', p.n < v.min_n,
                       'statistic=' || v.statistic || ' needs=' || v.min_n || ' n=' || p.n))
           AS reason,
       unless(reason, CASE v.statistic WHEN 'p50' THEN p.p[1] WHEN 'p90' THEN p.p[2]
                                       WHEN 'p99' THEN p.p[3] ELSE maximum END) AS value,
       CASE v.statistic WHEN 'max' THEN 'maximum' ELSE 'inverted CDF' END AS estimator
FROM measured_phases w CROSS JOIN wanted v
LEFT JOIN pooled p ON p.run_id = w.run_id AND p.phase = w.phase AND p.metric = v.metric;
