-- Every metric, one row a run, phase, metric and statistic; value NULL has its reason.

-- Those that no stated limit changes: all but phase_rates.
CREATE OR REPLACE TABLE settled_metrics AS
FROM request_statistics
UNION ALL BY NAME FROM published_throughput
UNION ALL BY NAME FROM device_bytes
UNION ALL BY NAME FROM run_bytes
UNION ALL BY NAME FROM bandwidth
UNION ALL BY NAME FROM work_statistics
UNION ALL BY NAME FROM work_prediction
UNION ALL BY NAME FROM engine_work
UNION ALL BY NAME FROM save_metrics
UNION ALL BY NAME FROM utilisation_metrics
UNION ALL BY NAME FROM calibrated_metrics
UNION ALL BY NAME FROM prediction
UNION ALL BY NAME FROM first_steps
UNION ALL BY NAME FROM fairness
UNION ALL BY NAME FROM scaling_metrics;

CREATE OR REPLACE VIEW metrics AS
SELECT m.run_id, r.campaign_id, r.scenario, r.arm, r.level, r.block, m.phase, m.metric,
       m.statistic, m.value, m.unit, m.n, m.estimator, m.reason
FROM (FROM settled_metrics UNION ALL BY NAME FROM phase_rates) m JOIN runs r USING (run_id);
