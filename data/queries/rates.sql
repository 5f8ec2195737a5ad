-- Rates and counts of a phase of requests.
--   output_throughput  sum of usage output tokens of ok requests / (last content - first sent),
--                      tokens/s on the client's clock; n is the ok requests. Cannot show: time
--                      after the last content, such as a request that hung; n_failed shows that.
--   goodput            ok requests within both limits / the same time, requests/s. The limits
--                      are stated beforehand: SET VARIABLE r8_ttft_limit_ns, r8_tpot_limit_ns.
--   n_requests, n_failed
CREATE OR REPLACE VIEW phase_rates AS
WITH sums AS (
    SELECT run_id, phase, count(*) AS n, count(*) FILTER (ok) AS n_ok,
           count(*) FILTER (NOT ok) AS n_failed,
           sum(output_tokens) FILTER (ok) AS tokens,
           count(*) FILTER (ok AND output_tokens IS NULL) AS n_uncounted,
           max(last_content_ns) - min(sent_ns) AS span_ns,
           count(*) FILTER (ok AND ttft_ns <= CAST(getvariable('r8_ttft_limit_ns') AS DOUBLE)
                            AND tpot_ns <= CAST(getvariable('r8_tpot_limit_ns') AS DOUBLE)) AS n_good
    FROM request_times GROUP BY run_id, phase
),
cells AS (
    SELECT w.run_id, w.phase, coalesce(s.n, 0) AS n, coalesce(s.n_ok, 0) AS n_ok,
           coalesce(s.n_failed, 0) AS n_failed,
           refuse('no_requests', s.n IS NULL) AS none_sent,
           refuse('no_request_finished', s.n_ok = 0) AS none_finished,
           refuse_some('requests_without_token_count', s.n_uncounted, s.n_ok) AS uncounted,
           refuse('no_limits_stated', getvariable('r8_ttft_limit_ns') IS NULL
                                      OR getvariable('r8_tpot_limit_ns') IS NULL) AS no_limits,
           refuse('no_time_passed', coalesce(s.span_ns, 0) <= 0) AS no_time,
           s.tokens, s.n_good, s.span_ns
    FROM measured_phases w LEFT JOIN sums s USING (run_id, phase)
)
SELECT run_id, phase, unnest([
    metric('output_throughput', '', 'tokens/s', n_ok, 'usage tokens / (last content - first sent)',
           coalesce(none_sent, none_finished, uncounted, no_time), per_s(tokens, span_ns)),
    metric('goodput', '', 'requests/s', n_ok, 'requests within limits / (last content - first sent)',
           coalesce(none_sent, no_limits, no_time), per_s(n_good, span_ns)),
    metric('n_requests', '', 'requests', n, 'count', NULL, n),
    metric('n_failed', '', 'requests', n, 'count', NULL, n_failed)], recursive := true)
FROM cells;

-- As others compute it: output_throughput_as_published, tokens/s: requests * planned output tokens
-- / (end of the last stream - first request sent), the formula N * 64 / wall of the published
-- reports. Beside output_throughput it shows what counting planned instead of generated tokens, and
-- waiting for the end of every stream, is worth. Cannot show: the time the published clients also
-- waited until a poll noticed the end; failed requests, which it counts as if they had answered.
CREATE OR REPLACE VIEW published_throughput AS
WITH spans AS (
    SELECT run_id, phase, count(*) AS n, count(*) - count(done_ns) AS n_open,
           max(done_ns) - min(sent_ns) AS wall_ns
    FROM requests GROUP BY run_id, phase
)
SELECT w.run_id, w.phase, unnest(metric(
    'output_throughput_as_published', '', 'tokens/s', coalesce(s.n, 0),
    'requests * planned tokens / wall',
    coalesce(refuse('no_requests', s.n IS NULL),
             refuse_some('streams_without_end', s.n_open, s.n),
             refuse('no_time_passed', s.wall_ns <= 0)),
    per_s(s.n * r.output_tokens, s.wall_ns)))
FROM measured_phases w JOIN runs r USING (run_id) LEFT JOIN spans s USING (run_id, phase);
