-- Output of every answered request: token ids where the server gives them, else the text.
CREATE OR REPLACE VIEW outputs AS
SELECT q.run_id, r.campaign_id, r.scenario, r.level, r.block, r.arm, q.phase, q.session,
       coalesce(CAST(q.output_token_ids AS VARCHAR), q.output_text) AS output
FROM requests q JOIN runs r USING (run_id)
WHERE q.outcome = 'ok' AND q.phase IN ('populate', 'measure', 'warm');

-- Sessions whose greedy output is the same, between two ways to have computed it in one block.
-- 'populate' is a recompute of the prompt, so
--   cold read against recompute:  measure against populate of one arm: restored KV is right KV
--   between arms:                 measure against measure: the patch changes no token
--   noise floor:                  populate against populate: what recompute alone repeats
-- Cannot show: which chunk was wrong; equality where the engine's numerics do not repeat (below
-- fp32 batches may differ), which is why the noise floor stands beside it.
CREATE OR REPLACE VIEW identity AS
SELECT a.campaign_id, a.scenario, a.level, a.block, a.arm, a.phase,
       b.arm AS other_arm, b.phase AS other_phase, count(*) AS n,
       count(*) FILTER (WHERE a.output = b.output) AS identical
FROM outputs a
JOIN outputs b ON a.campaign_id = b.campaign_id AND a.scenario = b.scenario
              AND a.level = b.level AND a.block = b.block AND a.session = b.session
WHERE (a.arm = b.arm AND a.phase = 'measure' AND b.phase = 'populate')
   OR (a.arm < b.arm AND a.phase = b.phase AND a.phase IN ('measure', 'populate'))
GROUP BY ALL;
