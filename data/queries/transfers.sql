-- One row a worker and phase of a work run (loading, switching, a checkpoint): what the worker said,
-- instants on the monotonic clock it shares with everything else. scheduled_ns is the barrier.
-- outcome: ok, failed (its own error), ended (the process was gone), silent (no answer in time).
-- A worker that starts an engine began with it at started_ns, loaded by the engine's log from
-- begin_ns to end_ns, and could answer from serve_begin_ns on; for others the three pairs are one.
-- Cannot show: which device the bytes came from; the byte balance of the run does.
--   load_ns, start_lag_ns   end - begin; started - scheduled
CREATE OR REPLACE TABLE work AS
SELECT run_id, fact(detail, 'phase') AS phase, fact(detail, 'worker') AS worker,
       fact(detail, 'outcome') AS outcome, fact(detail, 'error') AS error,
       fact_n(detail, 'scheduled_ns') AS scheduled_ns,
       fact_n(detail, 'turn_ns') AS turn_ns,
       coalesce(fact_n(detail, 'started_ns'), fact_n(detail, 'begin_ns')) AS started_ns,
       fact_n(detail, 'begin_ns') AS begin_ns, fact_n(detail, 'end_ns') AS end_ns,
       coalesce(fact_n(detail, 'serve_begin_ns'), fact_n(detail, 'end_ns')) AS serve_begin_ns,
       fact_n(detail, 'serve_end_ns') AS serve_end_ns,
       end_ns - begin_ns AS load_ns, started_ns - scheduled_ns AS start_lag_ns,
       fact_n(detail, 'bytes') AS bytes, fact_n(detail, 'file_bytes') AS file_bytes,
       fact_n(detail, 'files') AS files, fact_n(detail, 'synced_files') AS synced_files, detail
FROM events
WHERE name = 'work' AND json_valid(detail);

-- All workers of a phase together. bytes and file_bytes are NULL as soon as one did not say, the
-- times as soon as one has none; known_bytes is the sum of those that said.
--   wall_ns      last end - first begin
--   shared_ns    first end - last begin of those that went through: how long all of these worked;
--                negative: how far apart they were
--   longest_ns, mean_ns   of load_ns
CREATE OR REPLACE VIEW work_sums AS
SELECT run_id, phase, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed,
       sum_all(bytes) AS bytes, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS known_bytes,
       sum_all(file_bytes) AS file_bytes, CAST(sum(files) AS BIGINT) AS files,
       CAST(sum(synced_files) AS BIGINT) AS synced_files,
       max(end_ns) - min(begin_ns) AS wall_ns,
       min(end_ns) FILTER (outcome = 'ok') - max(begin_ns) FILTER (outcome = 'ok') AS shared_ns,
       avg(load_ns) AS mean_ns, max(load_ns) AS longest_ns
FROM work GROUP BY run_id, phase;

-- Times and bytes of a phase of work; NULL as soon as one worker did not go through.
--   work_wall           wall_ns; n is the workers.
--   work_time mean/max  load_ns of one worker. Cannot show: how they shared the device.
--   work_bytes          bytes the workers say they moved
--   work_bandwidth      work_bytes / work_wall
CREATE OR REPLACE TABLE work_statistics AS
SELECT run_id, phase, unnest([
    metric('work_wall', '', 'ns', n, 'last end - first begin', no_work, wall_ns),
    metric('work_time', 'mean', 'ns', n, 'mean over workers', no_work, mean_ns),
    metric('work_time', 'max', 'ns', n, 'maximum', no_work, longest_ns),
    metric('work_bytes', '', 'bytes', n, 'sum over workers', no_work, bytes),
    metric('work_bandwidth', '', 'bytes/s', n, 'bytes / (last end - first begin)', no_work,
           per_s(bytes, wall_ns))], recursive := true)
FROM (SELECT w.run_id, w.phase, coalesce(s.n, 0) AS n, s.wall_ns, s.mean_ns, s.longest_ns, s.bytes,
             coalesce(refuse('no_work', s.n IS NULL), refuse_some('workers_failed', s.n_failed, s.n),
                      refuse('no_time_passed', s.wall_ns <= 0)) AS no_work
      FROM measured_phases w JOIN runs r USING (run_id) LEFT JOIN work_sums s USING (run_id, phase)
      WHERE r.kind = 'transfer');

-- What the device alone would need, beside what was measured; jobs that read.
--   predicted_work_wall   load: bytes of all files / ceiling_bandwidth of the same block, ns
--   wall_over_predicted   work_wall / predicted_work_wall, no unit: 1 is a loader that keeps the
--                         device as busy as fio does. Cannot show: what the rest was spent on.
--   predicted_work_time   switch: bytes of one worker's files / ceiling_bandwidth; its loads come
--                         one after another
--   time_over_predicted   work_time mean / predicted_work_time
CREATE OR REPLACE VIEW work_prediction AS
WITH wanted(job, measured, statistic, predicted, quotient) AS (
    VALUES ('load', 'work_wall', '', 'predicted_work_wall', 'wall_over_predicted'),
           ('switch', 'work_time', 'mean', 'predicted_work_time', 'time_over_predicted')
),
found AS (
    SELECT r.run_id, w.predicted, w.quotient, s.value AS measured_ns, s.n, s.reason AS unmeasured,
           CASE w.job WHEN 'load' THEN r.total_bytes ELSE r.total_bytes / len(r.workers) END
               / c.bytes_per_s * 1e9 AS predicted_ns, c.reason AS no_ceiling
    FROM runs r JOIN wanted w ON w.job = r.job
    JOIN calibrated c ON c.run_id = r.run_id AND c.name = 'ceiling'
    JOIN work_statistics s ON s.run_id = r.run_id AND s.phase = 'measure'
                          AND s.metric = w.measured AND s.statistic = w.statistic
)
SELECT run_id, 'measure' AS phase, unnest([
    metric(predicted, '', 'ns', n, 'bytes of the files / ceiling bandwidth', no_ceiling, predicted_ns),
    metric(quotient, '', '', n, 'measured / predicted', coalesce(no_ceiling, unmeasured),
           measured_ns / predicted_ns)], recursive := true)
FROM found;

-- What an engine said of its own load in the measured phase, one row a worker: seconds, the size of
-- the checkpoint in GiB (both rounded to two digits by it), the directory. NULL where it did not say.
CREATE OR REPLACE VIEW engine_loads AS
WITH lines AS (
    SELECT run_id, instance AS worker,
           regexp_extract(text, 'Loading weights took ([0-9.]+) seconds', 1) AS seconds,
           regexp_extract(text, 'Checkpoint size: ([0-9.]+) GiB', 1) AS gib,
           regexp_extract(text, 'Starting to load model (.+?)\.\.\.', 1) AS directory
    FROM engine_log WHERE kind = 'weights'
)
SELECT run_id, worker, max(TRY_CAST(seconds AS DOUBLE)) AS said_s,
       max(TRY_CAST(gib AS DOUBLE)) AS said_gib, max(nullif(directory, '')) AS said_directory,
       count(*) FILTER (directory <> '') AS n_loads
FROM lines GROUP BY run_id, worker;

-- Times of engines that load, ns, mean over the workers of the measured phase.
--   engine_said_load   what the engines' own lines say they took
--   engine_start       engine started - could answer, its load included
--   engine_wait        switch due - the engine before was gone; 0 where none was before
CREATE OR REPLACE VIEW engine_work AS
WITH means AS (
    SELECT run_id, count(*) AS n, count(*) FILTER (outcome <> 'ok') AS n_failed,
           count(*) FILTER (said_s IS NULL) AS n_silent, avg(said_s * 1e9) AS said_ns,
           avg(serve_begin_ns - turn_ns) AS start_ns, avg(turn_ns - started_ns) AS wait_ns
    FROM work LEFT JOIN engine_loads USING (run_id, worker) WHERE phase = 'measure'
    GROUP BY run_id
)
SELECT run_id, 'measure' AS phase, unnest([
    metric('engine_said_load', 'mean', 'ns', n, 'mean of the engines'' own words',
           coalesce(no_work, silent), said_ns),
    metric('engine_start', 'mean', 'ns', n, 'mean of first answer - start', no_work, start_ns),
    metric('engine_wait', 'mean', 'ns', n, 'mean of start - switch due', no_work, wait_ns)],
    recursive := true)
FROM (SELECT r.run_id, coalesce(m.n, 0) AS n, m.said_ns, m.start_ns, m.wait_ns,
             coalesce(refuse('no_work', m.n IS NULL), refuse_some('workers_failed', m.n_failed, m.n))
                 AS no_work,
             refuse_some('engines_silent', m.n_silent, m.n) AS silent
      FROM runs r LEFT JOIN means m USING (run_id) WHERE r.tool = 'engine');

-- The timed window of a save: first rank's begin to last rank's end, commit and flushes included.
--   save_ns         its length; NULL unless every rank went through
--   payload_bytes   bytes of the weights, file_bytes those of the files with their headers
CREATE OR REPLACE TABLE saves AS
SELECT r.run_id, count(w.worker) AS n, min(w.begin_ns) AS begin_ns, max(w.end_ns) AS end_ns,
       sum(w.bytes) AS payload_bytes, sum(w.file_bytes) AS file_bytes,
       coalesce(refuse('no_work', count(w.worker) = 0),
                refuse_some('workers_failed', count(*) FILTER (w.outcome <> 'ok'), count(*)))
           AS reason,
       unless(reason, max(w.end_ns) - min(w.begin_ns)) AS save_ns
FROM runs r LEFT JOIN work w ON w.run_id = r.run_id AND w.phase = 'measure'
WHERE r.job = 'checkpoint'
GROUP BY r.run_id;
