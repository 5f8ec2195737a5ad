-- The page cache, file by file: the table of the run directories.
CREATE OR REPLACE TABLE residency AS FROM run_table('residency');

-- As it was seen at a moment between two instants.
CREATE OR REPLACE MACRO residency_at(of_run, at_moment, since_ns, until_ns) AS TABLE
SELECT path, size_bytes, resident_bytes, coalesce(self_test, false) AS self_test, reason
FROM residency
WHERE run_id = of_run AND moment = at_moment AND mono_ns BETWEEN since_ns AND until_ns;

-- The same, all files together: sums over the files whose size and residency are known, how many
-- these are, and how many passed the self-test of their method.
CREATE OR REPLACE MACRO residency_sums(of_run, at_moment, since_ns, until_ns) AS TABLE
SELECT count(*) AS n, count(*) FILTER (size_bytes > 0 AND resident_bytes IS NOT NULL) AS n_known,
       count(*) FILTER (self_test) AS n_tested,
       CAST(sum(size_bytes) FILTER (size_bytes > 0 AND resident_bytes IS NOT NULL) AS BIGINT)
           AS size_bytes,
       CAST(sum(resident_bytes) FILTER (size_bytes > 0) AS BIGINT) AS resident_bytes
FROM residency_at(of_run, at_moment, since_ns, until_ns);
