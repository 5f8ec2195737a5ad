-- Lines of the engine log that name a request, with the request and its phase. The response's id
-- is the beginning of the engine's: vLLM adds the number of the prompt and random characters
-- (response `cmpl-X`, engine `cmpl-X-0-a1b2c3d4`), so the join is by prefix up to a hyphen.
CREATE OR REPLACE TABLE log_requests AS
-- As many parts of the engine's id as responses have, so that equal values are joined: comparing
-- each line with each request takes the square of a session's requests.
WITH depths AS (
    SELECT DISTINCT len(string_split(server_request_id, '-')) AS depth
    FROM requests WHERE server_request_id IS NOT NULL
),
named AS (
    SELECT *, string_split(server_request_id, '-') AS parts
    FROM engine_log WHERE server_request_id IS NOT NULL
),
beginnings AS MATERIALIZED (
    SELECT e.*, array_to_string(e.parts[1:d.depth], '-') AS beginning
    FROM named e JOIN depths d ON d.depth <= len(e.parts)
)
SELECT e.run_id, e.instance, e.line, e.kind, log_worker(e.text) AS worker,
       q.request_id, q.phase, e.computed_tokens,
       e.hit_tokens, e.need_tokens, e.retrieved_tokens, e.required_tokens, e.stored_tokens
FROM beginnings e
JOIN requests q ON q.run_id = e.run_id AND q.instance = e.instance
               AND q.server_request_id = e.beginning;

-- One row a request: what LMCache said of it. A lookup is repeated while it waits and after a
-- preemption; the largest hit counts. Every rank loads its own part of the KV and says so: the rank
-- that loaded least is what the request got. Where no line names its process, nobody can tell two
-- ranks from one that loads again, and each line counts. hit_bytes: the KV of its whole chunks.
-- Cannot show: the tier that held the tokens.
CREATE OR REPLACE TABLE engine_requests AS
WITH loaded AS (
    SELECT run_id, request_id, min(retrieved_tokens) AS retrieved_tokens,
           max(required_tokens) AS required_tokens
    FROM (
        SELECT run_id, request_id, worker, max(retrieved_tokens) AS retrieved_tokens,
               max(required_tokens) AS required_tokens
        FROM log_requests WHERE kind = 'retrieved'
        GROUP BY run_id, request_id, worker, CASE WHEN worker = '' THEN line END
    )
    GROUP BY run_id, request_id
),
said AS (
    SELECT run_id, request_id,
           count(*) FILTER (kind = 'lookup') AS n_lookups,
           max(computed_tokens) FILTER (kind = 'lookup') AS computed_tokens,
           max(hit_tokens) FILTER (kind = 'lookup') AS hit_tokens,
           max(need_tokens) FILTER (kind = 'lookup') AS need_tokens,
           max(stored_tokens) FILTER (kind = 'stored') AS stored_tokens,
           min(line) AS first_line, max(line) AS last_line
    FROM log_requests GROUP BY run_id, request_id
)
SELECT q.run_id, q.phase, q.request_id, q.instance, q.session, q.outcome, q.server_request_id,
       q.prompt_tokens, coalesce(s.n_lookups, 0) AS n_lookups,
       s.* EXCLUDE (run_id, request_id, n_lookups),
       l.retrieved_tokens, l.required_tokens,
       kv_bytes(s.hit_tokens, r.chunk_tokens, r.chunk_bytes) AS hit_bytes
FROM requests q JOIN runs r USING (run_id) LEFT JOIN said s USING (run_id, request_id)
LEFT JOIN loaded l USING (run_id, request_id);

-- Reads of the patch with the phase they belong to. A read line names no request: on the sync path
-- it follows the lookup of its request, on the async path the lookup's answer follows the read; so
-- the nearest line of a request before (sync) or after it (async) tells the phase.
CREATE OR REPLACE TABLE patch_reads AS
WITH reads AS (
    SELECT *, contains(text, ' path=async ') AS is_async FROM engine_log WHERE kind = 'patch_read'
)
SELECT p.run_id, p.instance, p.line, l.phase, p.keys, p.segments, p.misses, p.read_bytes
FROM (SELECT * FROM reads WHERE NOT is_async) p
ASOF LEFT JOIN log_requests l
    ON p.run_id = l.run_id AND p.instance = l.instance AND p.line >= l.line
UNION ALL
SELECT p.run_id, p.instance, p.line, l.phase, p.keys, p.segments, p.misses, p.read_bytes
FROM (SELECT * FROM reads WHERE is_async) p
ASOF LEFT JOIN log_requests l
    ON p.run_id = l.run_id AND p.instance = l.instance AND p.line <= l.line;

-- The same, all reads of a phase together.
CREATE OR REPLACE VIEW patch_sums AS
SELECT run_id, instance, phase, count(*) AS n, CAST(sum(read_bytes) AS BIGINT) AS read_bytes,
       CAST(sum(segments) AS BIGINT) AS segments, CAST(sum(misses) AS BIGINT) AS misses
FROM patch_reads GROUP BY run_id, instance, phase;

-- What the engine's log says of a phase, by instance; instance NULL: of all instances together.
-- The sums are over the requests that have such a line, n_ says how many these are.
CREATE OR REPLACE TABLE engine_sums AS
SELECT run_id, phase, instance, count(*) AS n,
       CAST(sum(hit_bytes) AS BIGINT) AS hit_bytes, count(hit_bytes) AS n_hit,
       CAST(sum(need_tokens) AS BIGINT) AS need_tokens, count(need_tokens) AS n_need,
       CAST(sum(retrieved_tokens) AS BIGINT) AS retrieved_tokens,
       count(retrieved_tokens) AS n_retrieved
FROM engine_requests
GROUP BY GROUPING SETS ((run_id, phase), (run_id, phase, instance));

-- Where a measured session was populated, and what its own request hit: one row a measured
-- request. Sharing between engines is hit_tokens on rows whose populated_on is another instance.
-- Cannot show: which tier held the tokens; the byte balance of the run does.
CREATE OR REPLACE VIEW request_origin AS
SELECT m.run_id, m.request_id, m.session, m.instance AS measured_on, p.instance AS populated_on,
       e.n_lookups, e.hit_tokens, e.retrieved_tokens
FROM requests m
LEFT JOIN requests p ON p.run_id = m.run_id AND p.session = m.session AND p.phase = 'populate'
                    AND p.outcome = 'ok'
LEFT JOIN engine_requests e ON e.run_id = m.run_id AND e.request_id = m.request_id
WHERE m.phase = 'measure';
