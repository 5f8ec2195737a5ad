-- The tables of the run directories, copied; probes and chunks, of which a long session has tens of
-- millions of rows, are views over the files on disk: Parquet answers as fast.
--
-- DuckDB does not compare files with their manifest; `r8 judge` does, or in the run directory
-- `sha256sum -c MANIFEST.sha256`.

-- A directory counts as a run when it has its manifest; those still being written or finalised
-- (.partial, .finalising) are left out even if it is already there. Where runs were chosen, no
-- other folder is looked into.
SET VARIABLE r8_run_dirs = coalesce(
    CAST(getvariable('r8_run_dirs') AS VARCHAR[]),
    (SELECT list(regexp_replace(file, '/MANIFEST\.sha256$', '') ORDER BY file)
     FROM glob(coalesce(CAST(getvariable('r8_run_dirs') AS VARCHAR[])[1], 'data/runs/*/*')
               || '/MANIFEST.sha256')
     WHERE NOT regexp_matches(file, '\.(partial|finalising|spent)/'))
);

CREATE OR REPLACE MACRO run_files(name) AS
    list_transform(getvariable('r8_run_dirs'), lambda d: d || '/' || name);

-- What lies in the files counts, not what a folder above them is called (key=value/).
CREATE OR REPLACE MACRO run_table(name) AS TABLE
    FROM read_parquet(run_files(name || '.parquet'), hive_partitioning = false,
                      union_by_name = false);

CREATE OR REPLACE TABLE requests AS FROM run_table('requests');
CREATE OR REPLACE VIEW chunks AS FROM run_table('chunks');
CREATE OR REPLACE VIEW probes AS FROM run_table('probes');
CREATE OR REPLACE TABLE events AS FROM run_table('events');
CREATE OR REPLACE TABLE engine_log AS FROM run_table('engine_log');
CREATE OR REPLACE TABLE calibration AS FROM run_table('calibration');
