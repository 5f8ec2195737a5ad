-- What the views say again and again.

-- A rate: so much in so many ns, by the second.
CREATE OR REPLACE MACRO per_s(amount, elapsed_ns) AS amount / (elapsed_ns / 1e9);

-- A time of one request; a failed one took for ever, and every percentile sees it.
CREATE OR REPLACE MACRO or_forever(ok, time_ns) AS
    CASE WHEN ok THEN CAST(time_ns AS DOUBLE) ELSE CAST('inf' AS DOUBLE) END;

-- A sum of integers that are all known; NULL as soon as one is not.
CREATE OR REPLACE MACRO sum_all(amount) AS
    CASE WHEN count(*) = count(amount) THEN CAST(sum(amount) AS BIGINT) END;

-- What is left of a difference that cannot be negative; NULL stays NULL, as it does not in greatest.
CREATE OR REPLACE MACRO not_below_0(left_over) AS CASE WHEN left_over < 0 THEN 0 ELSE left_over END;

-- Bytes of the whole chunks of so many tokens.
CREATE OR REPLACE MACRO kv_bytes(tokens, chunk_tokens, chunk_bytes) AS
    CAST(tokens // chunk_tokens AS BIGINT) * chunk_bytes;

-- A fact of an event's detail, as text and as a whole number.
CREATE OR REPLACE MACRO fact(detail, name) AS json_extract_string(detail, '$.' || name);
CREATE OR REPLACE MACRO fact_n(detail, name) AS CAST(fact(detail, name) AS BIGINT);

-- Why a value is NULL: `id key=value key=value`, a value with spaces in double quotes; NULL where
-- nothing forbids the value. r8/message.py reads them back, the catalogues `reasons` print them.
CREATE OR REPLACE MACRO refuse
    (id, condition) AS CASE WHEN condition THEN id END,
    (id, condition, facts) AS CASE WHEN condition THEN id || ' ' || facts END;

-- The same for n of several.
CREATE OR REPLACE MACRO refuse_some(id, n, total) AS
    CASE WHEN n > 0 THEN id || ' n=' || n || ' of=' || total END;

-- A value that nothing forbids.
CREATE OR REPLACE MACRO unless(reason, value) AS CASE WHEN reason IS NULL THEN value END;

-- One metric of a row: SELECT run_id, phase, unnest(metric(...)), or of several
-- unnest([metric(...), ...], recursive := true).
CREATE OR REPLACE MACRO metric(name, statistic, unit, n, estimator, reason, value) AS {
    'metric': name, 'statistic': statistic, 'unit': unit, 'n': CAST(n AS BIGINT),
    'estimator': estimator, 'reason': CAST(reason AS VARCHAR),
    'value': unless(reason, CAST(value AS DOUBLE))
};

-- Which process of an engine wrote a line: its pid where vLLM puts one before it, else ''.
CREATE OR REPLACE MACRO log_worker(text) AS regexp_extract(text, 'pid=(\d+)', 1);
