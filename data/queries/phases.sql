-- One row an occurrence of a phase: its marks, of the pair <phase>_begin and <phase>_end.
CREATE OR REPLACE TABLE phases AS
WITH marks AS (
    SELECT run_id,
           regexp_extract(name, '^(.+)_(begin|end)$', 1) AS phase,
           regexp_extract(name, '^(.+)_(begin|end)$', 2) AS edge,
           mono_ns, detail,
           row_number() OVER (PARTITION BY run_id, name ORDER BY mono_ns) AS occurrence
    FROM events
    WHERE regexp_matches(name, '^.+_(begin|end)$')
)
SELECT run_id, phase, occurrence,
       max(mono_ns) FILTER (edge = 'begin') AS begin_ns,
       max(mono_ns) FILTER (edge = 'end') AS end_ns,
       max(detail) FILTER (edge = 'begin') AS detail
FROM marks
GROUP BY run_id, phase, occurrence;

-- Each run with the phases that have metrics, whether they occurred or not: `measure` is the cold
-- burst, `warm` the same sessions again from the page cache.
CREATE OR REPLACE VIEW measured_phases AS
SELECT run_id, phase FROM runs CROSS JOIN (VALUES ('measure'), ('warm')) w(phase);

-- How long each block of a campaign took, all its cells and what lies between them included.
CREATE OR REPLACE VIEW block_times AS
SELECT r.campaign_id, r.scenario, r.block, count(DISTINCT r.run_id) AS n_runs,
       max(e.wall_ns) - min(e.wall_ns) AS block_ns
FROM runs r JOIN events e USING (run_id)
GROUP BY r.campaign_id, r.scenario, r.block;
