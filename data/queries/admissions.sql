-- One row a measured request: what the device had to read before the engine could answer it. An
-- engine loads the KV of all requests it took into a step one after another and answers none of
-- them before the last is loaded; how many of a burst its first step takes is chance. The log says
-- which: a request is looked up when it is taken, and each finished load has its line.
--   loads_before   loads of this engine that had ended when the request was taken: equal numbers
--                  are one step, 0 is the first
--   hit_bytes      of the request, by its last lookup before its load
--   load_bytes     of its step and the steps before it, and what the other engines of the run read
--                  from the same device meanwhile, shared evenly
-- Cannot show: two steps with no load between them; they count as one.
CREATE OR REPLACE TABLE admissions AS
WITH lines AS (
    SELECT run_id, instance, request_id, kind, line, hit_tokens,
           count(*) FILTER (kind = 'retrieved')
               OVER (PARTITION BY run_id, instance ORDER BY line) AS loads_before,
           min(line) FILTER (kind = 'retrieved')
               OVER (PARTITION BY run_id, instance, request_id) AS loaded_line
    FROM log_requests
    WHERE phase = 'measure' AND kind IN ('lookup', 'retrieved')
),
taken AS (
    SELECT run_id, instance, request_id, arg_max(loads_before, line) AS loads_before,
           arg_max(hit_tokens, line) AS hit_tokens
    FROM lines WHERE kind = 'lookup' AND line < coalesce(loaded_line, line + 1)
    GROUP BY run_id, instance, request_id
),
own AS (
    SELECT q.run_id, q.instance, q.request_id, t.loads_before,
           kv_bytes(t.hit_tokens, r.chunk_tokens, r.chunk_bytes) AS hit_bytes,
           sum(hit_bytes) OVER (PARTITION BY q.run_id, q.instance ORDER BY t.loads_before
                                RANGE UNBOUNDED PRECEDING) AS own_bytes
    FROM requests q JOIN runs r USING (run_id) LEFT JOIN taken t USING (run_id, request_id)
    WHERE q.phase = 'measure'
),
totals AS (
    SELECT run_id, instance, sum(hit_bytes) AS total_bytes FROM own GROUP BY run_id, instance
)
SELECT o.run_id, o.instance, o.request_id, o.loads_before, o.hit_bytes,
       CASE WHEN o.hit_bytes IS NOT NULL
            THEN CAST(o.own_bytes + coalesce(sum(least(o.own_bytes, t.total_bytes))
                      FILTER (t.instance IS NOT NULL), 0) AS HUGEINT) END AS load_bytes
FROM own o LEFT JOIN totals t ON t.run_id = o.run_id AND t.instance <> o.instance
GROUP BY o.run_id, o.instance, o.request_id, o.loads_before, o.hit_bytes, o.own_bytes;

-- first_step_requests: how many of a burst its first step took, with no load ended before.
CREATE OR REPLACE VIEW first_steps AS
SELECT run_id, 'measure' AS phase, unnest(metric(
    'first_step_requests', '', '', count(*), 'count of requests taken before any load had ended',
    refuse_some('requests_without_lookup', count(*) - count(loads_before), count(*)),
    count(*) FILTER (loads_before = 0)))
FROM admissions GROUP BY run_id;
