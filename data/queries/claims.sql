-- Published figures beside what the runs measured.
--
-- `figures` reads data/published/figures.parquet from the top of the checkout; another place:
--     SET VARIABLE r8_figures = '/somewhere/figures.parquet';
-- Standing side by side is no verdict: whether a run may be compared with a page at all (basis,
-- platform, certificate, number of blocks) is `r8 judge`.
SET VARIABLE r8_figures = coalesce(
    CAST(getvariable('r8_figures') AS VARCHAR), 'data/published/figures.parquet');

CREATE OR REPLACE VIEW figures AS SELECT * FROM read_parquet(getvariable('r8_figures'));

-- A figure and a run that measures what it states: same scenario and level, the metric the ledger
-- names, and the arm it names or an arm of the role it names. `measured` is in the figure's own
-- unit, its GB as `unit_base` says; ratios of two arms are in figure_ratios.
CREATE OR REPLACE VIEW figure_runs AS
SELECT f.figure_id, f.as_printed, f.unit, f.value AS published, m.run_id, m.campaign_id, m.arm,
       m.level, m.block, r.basis, m.metric, m.statistic,
       m.value / f.measured_unit_size AS measured,
       measured / f.value AS measured_by_published
FROM figures f
JOIN metrics m ON m.scenario = f.measured_by AND m.metric = f.measured_metric
              AND m.phase = 'measure'
              AND m.statistic = coalesce(f.measured_statistic, '')
              AND (f.level IS NULL OR f.level = m.level)
JOIN runs r ON r.run_id = m.run_id AND f.measured_arms[1] IN (r.arm, 'role:' || r.role)
WHERE f.measured_kind = 'value' AND len(f.measured_arms) = 1;

-- The same for ratios of two arms in one block.
CREATE OR REPLACE VIEW figure_ratios AS
SELECT f.figure_id, f.as_printed, f.value AS published, a.campaign_id, a.level, a.block,
       a.numerator_arm, a.denominator_arm, a.metric, a.statistic, exp(a.ln_ratio) AS measured,
       measured / f.value AS measured_by_published
FROM figures f
JOIN arm_ratio a ON a.scenario = f.measured_by AND a.metric = f.measured_metric
                AND a.phase = 'measure' AND a.statistic = coalesce(f.measured_statistic, '')
                AND (f.level IS NULL OR f.level = a.level)
JOIN runs n ON n.run_id = a.numerator_run_id
           AND f.measured_arms[1] IN (n.arm, 'role:' || n.role)
JOIN runs d ON d.run_id = a.denominator_run_id
           AND f.measured_arms[2] IN (d.arm, 'role:' || d.role)
WHERE f.unit = 'x' AND len(f.measured_arms) = 2;
