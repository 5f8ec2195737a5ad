-- Share of an hour left for work at n switches an hour, by the published model: 1 - n * t / 3600,
-- t the mean load of the run in modelled seconds (times time_scale). A model, never a measurement;
-- NULL where the loads alone need more than the hour. Cannot show: time lost to anything but
-- loading, work that goes on meanwhile.
CREATE OR REPLACE TABLE utilisation AS
WITH loads AS (
    SELECT r.run_id, r.arm, r.block, s.value * r.time_scale / 1e9 AS load_s, s.n AS n_loads,
           s.reason, c.bytes_per_s,
           r.total_bytes / len(r.workers) / c.bytes_per_s * r.time_scale AS predicted_load_s
    FROM runs r
    JOIN work_statistics s ON s.run_id = r.run_id AND s.phase = 'measure'
                          AND s.metric = 'work_time' AND s.statistic = 'mean'
    LEFT JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    WHERE r.job = 'switch'
)
SELECT run_id, arm, block, n_per_hour, n_loads, load_s, predicted_load_s,
       CASE WHEN n_per_hour * load_s <= 3600 THEN 1 - n_per_hour * load_s / 3600 END AS utilisation,
       CASE WHEN n_per_hour * predicted_load_s <= 3600
            THEN 1 - n_per_hour * predicted_load_s / 3600 END AS predicted_utilisation,
       coalesce(reason, refuse('loads_exceed_hour', n_per_hour * load_s > 3600,
                               'n=' || n_per_hour || ' load_s=' || round(load_s, 1))) AS reason
FROM loads CROSS JOIN (SELECT unnest(generate_series(1, 60)) AS n_per_hour);

-- A switching run's own hour: what was served beside what the model says at the same pace.
--   utilisation_measured   sum of (stopped answering - could answer) / (last stop - first switch).
--                          A worker that could not answer when the next switch was due is refused,
--                          not cut. Where engines are switched, stopping and starting them is in it,
--                          and in the model's load is not.
--   utilisation_modelled pace  1 - mean load / (time from switch to switch)
--   utilisation_modelled whole the same with the whole switch for the load: from its instant until
--                          it could answer. Where loaders switch, the two are one but for their lag.
--   utilisation_modelled n20   the view `utilisation` at the published 20 switches an hour
--   predicted_utilisation n20  the same with bytes / ceiling_bandwidth for the load
--   utilisation_over_predicted n20, utilisation_over_modelled pace and whole: measured by those
CREATE OR REPLACE VIEW utilisation_metrics AS
WITH served AS (
    SELECT run_id, count(*) AS n, sum(serve_end_ns - serve_begin_ns) AS served_ns,
           max(serve_end_ns) - min(started_ns) AS window_ns,
           avg(serve_begin_ns - scheduled_ns) AS switch_ns, avg(end_ns - begin_ns) AS load_ns,
           (max(scheduled_ns) - min(scheduled_ns)) / (count(*) - 1) AS period_ns,
           count(*) FILTER (outcome <> 'ok') AS n_failed,
           count(*) FILTER (serve_end_ns IS NULL) AS n_idle,
           count(*) FILTER (serve_begin_ns - scheduled_ns > late_ns) AS n_late
    FROM (SELECT *, lead(scheduled_ns) OVER (PARTITION BY run_id ORDER BY scheduled_ns)
                    - scheduled_ns AS late_ns
          FROM work WHERE phase = 'measure')
    GROUP BY run_id
),
found AS (
    SELECT r.run_id, coalesce(s.n, 0) AS n, s.served_ns / s.window_ns AS measured,
           1 - s.load_ns / s.period_ns AS pace, 1 - s.switch_ns / s.period_ns AS whole,
           u.utilisation, u.predicted_utilisation AS predicted, u.reason AS no_model,
           coalesce(refuse('no_work', s.n IS NULL), refuse_some('workers_failed', s.n_failed, s.n),
                    refuse('one_switch', s.n < 2), refuse_some('workers_idle', s.n_idle, s.n),
                    refuse_some('loads_late', s.n_late, s.n)) AS no_hour,
           refuse('no_predicted_utilisation', predicted IS NULL) AS no_prediction
    FROM runs r LEFT JOIN served s USING (run_id)
    LEFT JOIN utilisation u ON u.run_id = r.run_id AND u.n_per_hour = 20
    WHERE r.job = 'switch'
)
SELECT run_id, 'measure' AS phase, unnest([
    metric('utilisation_measured', '', '', n, 'served / window', no_hour, measured),
    metric('utilisation_modelled', 'pace', '', n, 'modelled: 1 - mean load / period', no_hour, pace),
    metric('utilisation_modelled', 'whole', '', n, 'modelled: 1 - mean whole switch / period',
           no_hour, whole),
    metric('utilisation_modelled', 'n20', '', n, 'modelled: 1 - 20 * mean load / 3600 s', no_model,
           utilisation),
    metric('predicted_utilisation', 'n20', '', n, 'modelled: 1 - 20 * bytes / ceiling / 3600 s',
           no_prediction, predicted),
    metric('utilisation_over_modelled', 'pace', '', n, 'measured / modelled', no_hour,
           measured / pace),
    metric('utilisation_over_modelled', 'whole', '', n, 'measured / modelled', no_hour,
           measured / whole),
    metric('utilisation_over_predicted', 'n20', '', n, 'measured / predicted',
           coalesce(no_hour, no_prediction), measured / predicted)], recursive := true)
FROM found;
