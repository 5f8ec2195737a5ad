-- Arms against each other.
--
-- ln(numerator / denominator) of every metric between two arms of one block; NULL unless both are
-- finite and positive. Every ordered pair of arms is there. Runs are not filtered: which of them
-- may count is the certificate's business.
CREATE OR REPLACE VIEW arm_ratio AS
SELECT a.campaign_id, a.scenario, a.level, a.block, a.phase, a.metric, a.statistic,
       a.arm AS numerator_arm, b.arm AS denominator_arm,
       a.run_id AS numerator_run_id, b.run_id AS denominator_run_id,
       a.value AS numerator, b.value AS denominator,
       CASE WHEN a.value > 0 AND b.value > 0 AND isfinite(a.value) AND isfinite(b.value)
            THEN ln(a.value / b.value) END AS ln_ratio
FROM metrics a
JOIN metrics b ON a.campaign_id = b.campaign_id AND a.scenario = b.scenario AND a.level = b.level
              AND a.block = b.block AND a.phase = b.phase AND a.metric = b.metric
              AND a.statistic = b.statistic AND a.arm <> b.arm;
