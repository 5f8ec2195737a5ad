-- The tables of the run directories, as DuckDB views over the files on disk; the small ones copied.
--
-- By hand, from the top of the checkout (these two files are all that r8.metrics.measure runs as well):
--     duckdb
--     .read data/queries/tables.sql
--     .read data/queries/metrics.sql
--     SELECT * FROM metrics;
-- That reads every sealed run below data/runs/. To choose other runs, first
--     SET VARIABLE r8_run_dirs = ['data/reference/r1-parallel-read/<run_id>'];
--
-- DuckDB does not compare files with their manifest; `r8 judge` does, or in the run directory
-- `sha256sum -c MANIFEST.sha256`.

-- A directory counts as a run when it has its manifest; those still being written or finalised
-- (.partial, .finalising) are left out even if it is already there.
SET VARIABLE r8_run_dirs = coalesce(
    CAST(getvariable('r8_run_dirs') AS VARCHAR[]),
    (SELECT list(regexp_replace(file, '/MANIFEST\.sha256$', '') ORDER BY file)
     FROM glob('data/runs/*/*/MANIFEST.sha256')
     WHERE NOT regexp_matches(file, '\.(partial|finalising|spent)/'))
);

CREATE OR REPLACE VIEW requests AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/requests.parquet'));

CREATE OR REPLACE VIEW chunks AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/chunks.parquet'));

CREATE OR REPLACE VIEW probes AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/probes.parquet'));

CREATE OR REPLACE TABLE events AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/events.parquet'));

CREATE OR REPLACE VIEW residency AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/residency.parquet'));

CREATE OR REPLACE VIEW engine_log AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/engine_log.parquet'));

CREATE OR REPLACE VIEW calibration AS
SELECT * FROM read_parquet(list_transform(getvariable('r8_run_dirs'), lambda d: d || '/calibration.parquet'));

-- run.json, flattened. hit_tokens_per_session: whole chunks of the prompt less its last token;
-- expected_hit_bytes: what the whole cell must read from its device.
CREATE OR REPLACE TABLE runs AS
SELECT
    run_id, campaign_id, scenario, arm, concurrency, 'c' || concurrency AS level, block, "order",
    balanced, basis, site, site_sha256, rung, seed, started_wall_ns, r8_version, schema_version,
    versions, comparability, host, kv_device, kv_dir, other_kv_devices, instances, complete, note,
    link_bytes_per_s, coalesce(recompute, false) AS recompute,
    work.job AS job, work.moves AS moves, work.tool AS tool, work.workers AS workers,
    work.total_bytes AS work_bytes, coalesce(work.time_scale, 1) AS time_scale,
    patch.expected AS patch_expected,
    patch.lmcache_version AS patch_lmcache_version,
    patch.target_sha256 AS patch_target_sha256,
    patch.base_sha256 AS patch_base_sha256,
    patch.module_sha256 AS patch_module_sha256,
    expectation.sessions AS sessions,
    expectation.prompt_tokens AS prompt_tokens,
    expectation.output_tokens AS output_tokens,
    expectation.chunk_tokens AS chunk_tokens,
    expectation.chunk_bytes AS chunk_bytes,
    expectation.cpu_tier_bytes AS cpu_tier_bytes,
    chunk_tokens * ((prompt_tokens - 1) // chunk_tokens) AS hit_tokens_per_session,
    sessions * ((prompt_tokens - 1) // chunk_tokens) * chunk_bytes AS expected_hit_bytes
FROM read_json(
    list_transform(getvariable('r8_run_dirs'), lambda d: d || '/run.json'),
    format = 'unstructured',
    columns = {
        schema_version: 'BIGINT', run_id: 'VARCHAR', campaign_id: 'VARCHAR', scenario: 'VARCHAR',
        arm: 'VARCHAR', concurrency: 'BIGINT', block: 'BIGINT', "order": 'BIGINT',
        balanced: 'BOOLEAN', basis: 'VARCHAR', site: 'VARCHAR', site_sha256: 'VARCHAR',
        rung: 'VARCHAR', seed: 'BIGINT', started_wall_ns: 'BIGINT', r8_version: 'VARCHAR',
        versions: 'MAP(VARCHAR, VARCHAR)', comparability: 'MAP(VARCHAR, VARCHAR)',
        host: 'MAP(VARCHAR, VARCHAR)', kv_device: 'VARCHAR', kv_dir: 'VARCHAR',
        other_kv_devices: 'VARCHAR[]', instances: 'VARCHAR[]',
        patch: 'STRUCT(expected VARCHAR, lmcache_version VARCHAR, target_sha256 VARCHAR, base_sha256 VARCHAR, module_sha256 VARCHAR)',
        expectation: 'STRUCT(sessions BIGINT, prompt_tokens BIGINT, output_tokens BIGINT, chunk_tokens BIGINT, chunk_bytes BIGINT, cpu_tier_bytes BIGINT)',
        complete: 'BOOLEAN', note: 'VARCHAR', link_bytes_per_s: 'BIGINT', recompute: 'BOOLEAN',
        work: 'STRUCT(job VARCHAR, moves VARCHAR, tool VARCHAR, workers BIGINT, files BIGINT, total_bytes BIGINT, time_scale DOUBLE)'
    }
);
