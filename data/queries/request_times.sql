-- One row a request; durations in ns, NULL where the request did not get so far or failed.
--   ttft_ns      first content (non-empty, reasoning included) - first request byte sent.
--                Cannot show: what the time went to (queue, lookup, load, prefill).
--   tpot_ns      (last content - first content) / (output tokens - 1), tokens by the server's
--                usage; needs 2 output tokens. Cannot show: single stalls.
--   e2e_ns       last content - first request byte sent; the usage record and the end mark of the
--                stream come after it and are not waited for.
--   send_lag_ns  sent - scheduled: how late the client was.
CREATE OR REPLACE VIEW request_times AS
SELECT run_id, phase, request_id, instance, session, outcome, error,
       outcome = 'ok' AS ok, output_tokens, sent_ns, last_content_ns,
       CASE WHEN ok THEN first_content_ns - sent_ns END AS ttft_ns,
       CASE WHEN ok AND output_tokens >= 2
            THEN (last_content_ns - first_content_ns) / (output_tokens - 1) END AS tpot_ns,
       CASE WHEN ok THEN last_content_ns - sent_ns END AS e2e_ns,
       first_byte_ns - sent_ns AS first_byte_after_ns,
       first_answer_ns - sent_ns AS first_answer_after_ns,
       sent_ns - scheduled_ns AS send_lag_ns
FROM requests;

-- TTFT of every request beside the cell it belongs to.
CREATE OR REPLACE VIEW ttft AS
SELECT r.campaign_id, r.scenario, r.arm, r.level, r.block, t.run_id, t.phase, t.request_id,
       t.instance, t.session, t.outcome, t.ttft_ns, t.first_byte_after_ns,
       t.first_answer_after_ns, t.send_lag_ns
FROM request_times t JOIN runs r USING (run_id);

-- Gaps between consecutive content events of one response, ns: inter-token latency where the
-- server sends one token an event. Tokens that arrived together in one event are in `samples` as
-- those of several events that arrived together: the first has the gap, the others a gap of 0.
-- Cannot show: tokens of an event where the server does not say how many (chunks.tokens is NULL).
CREATE OR REPLACE VIEW content_gaps AS
SELECT c.run_id, q.phase, c.request_id, c.seq,
       c.arrival_ns - lag(c.arrival_ns)
           OVER (PARTITION BY q.phase, q.request_no ORDER BY c.seq) AS gap_ns
FROM chunks c
-- A number instead of two names: millions of chunks are sorted by it. The phase beside it lets a
-- question about one phase sort the chunks of that phase alone.
JOIN (SELECT run_id, request_id, phase, row_number() OVER () AS request_no FROM requests) q
    USING (run_id, request_id)
WHERE c.kind IN ('content', 'reasoning');

-- How each answer was handed over, one row a request; what a later reader may take as a sign:
--   content_instants  distinct arrivals of content events. 1 of several events, or of one event with
--                     all tokens: the whole answer came at once, and TTFT is its whole time.
--   content_span_ns   last content - first content
--   packed_events     content events that carry more than one token
--   event_tokens      tokens that events say they carry, those without text included; more than
--                     output_tokens (the server's usage) contradict it, fewer are no contradiction
-- Cannot show: whether a proxy or the server held an answer back; tokens of events without a count.
CREATE OR REPLACE VIEW deliveries AS
SELECT q.run_id, q.phase, q.request_id, q.outcome, q.output_tokens,
       count(c.seq) FILTER (c.kind IN ('content', 'reasoning')) AS content_events,
       count(DISTINCT c.arrival_ns) FILTER (c.kind IN ('content', 'reasoning'))
           AS content_instants,
       q.last_content_ns - q.first_content_ns AS content_span_ns,
       count(c.seq) FILTER (c.kind IN ('content', 'reasoning') AND c.tokens > 1) AS packed_events,
       CAST(sum(c.tokens) AS DOUBLE) AS event_tokens
FROM requests q LEFT JOIN chunks c USING (run_id, request_id)
GROUP BY ALL;

-- What percentiles are taken of. A failed request gives +infinity (0 for a speed), and one
-- infinite gap beside the gaps it had; a row that is ok but lacks an instant gives NULL, which
-- makes the statistic NULL. So does an event that says it carries more than 1,024 tokens: none does.
CREATE OR REPLACE VIEW samples AS
SELECT run_id, phase, 'ttft' AS metric, or_forever(ok, ttft_ns) AS value FROM request_times
UNION ALL
SELECT run_id, phase, 'tpot', or_forever(ok, tpot_ns) FROM request_times
UNION ALL
SELECT run_id, phase, 'e2e', or_forever(ok, e2e_ns) FROM request_times
UNION ALL
SELECT run_id, phase, 'itl', CAST(gap_ns AS DOUBLE) FROM content_gaps WHERE gap_ns IS NOT NULL
UNION ALL
SELECT c.run_id, q.phase, 'itl',
       unnest(CASE WHEN c.tokens <= 1024 THEN list_transform(range(c.tokens - 1), lambda _: 0.0)
                   ELSE [NULL] END)
FROM chunks c JOIN requests q USING (run_id, request_id)
WHERE c.tokens > 1 AND c.kind IN ('content', 'reasoning')
UNION ALL
SELECT run_id, phase, 'itl', or_forever(ok, NULL) FROM request_times WHERE NOT ok
UNION ALL
SELECT run_id, phase, 'output_tokens_per_s',
       CASE WHEN NOT ok THEN 0.0 WHEN tpot_ns > 0 THEN 1e9 / tpot_ns END
FROM request_times;
