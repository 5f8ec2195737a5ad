-- run.json, flattened; one row a run. What a kind of run has not is NULL.
--   kind       kv: an engine answers requests; transfer: workers move files
--   role       what the arm is for: array, local, pool, recompute, ...
--   patch_expected, connector, reads    its treatment: the patch state, where its engine keeps KV
--              (disk or fs), and how its reader reads the device (serial or parallel; NULL where it
--              does not read, or nobody can say), which decides which calibration predicts it
--   hit_tokens_per_session  whole chunks of the prompt less its last token
--   expected_bytes          what the whole cell must move: hits of its sessions, or its files
CREATE OR REPLACE TABLE runs AS
WITH files AS (
    SELECT unnest(from_json(content, '{
        "schema_version": "BIGINT", "kind": "VARCHAR", "run_id": "VARCHAR",
        "campaign_id": "VARCHAR", "plan_sha256": "VARCHAR", "scenario": "VARCHAR",
        "arm": "VARCHAR", "role": "VARCHAR", "concurrency": "BIGINT", "block": "BIGINT",
        "order": "BIGINT", "balanced": "BOOLEAN", "basis": "VARCHAR", "site": "VARCHAR",
        "site_sha256": "VARCHAR", "fallback_level": "VARCHAR", "seed": "BIGINT",
        "started_wall_ns": "BIGINT", "r8_version": "VARCHAR", "versions": "MAP(VARCHAR, VARCHAR)",
        "comparability": "MAP(VARCHAR, VARCHAR)", "host": "MAP(VARCHAR, VARCHAR)",
        "kv_host": "VARCHAR", "kv_device": "VARCHAR", "kv_dir": "VARCHAR",
        "other_kv_devices": [{"host": "VARCHAR", "name": "VARCHAR"}],
        "complete": "BOOLEAN", "note": "VARCHAR", "link_bytes_per_s": "BIGINT",
        "treatment": {"patch": "VARCHAR", "connector": "VARCHAR", "reads": "VARCHAR"},
        "instances": ["VARCHAR"],
        "patch": {"lmcache_version": "VARCHAR", "target_sha256": "VARCHAR",
                  "base_sha256": "VARCHAR", "module_sha256": "VARCHAR"},
        "expectation": {"sessions": "BIGINT", "prompt_tokens": "BIGINT", "output_tokens": "BIGINT",
                        "chunk_tokens": "BIGINT", "chunk_bytes": "BIGINT",
                        "cpu_tier_bytes": "BIGINT"},
        "job": "VARCHAR", "moves": "VARCHAR", "tool": "VARCHAR", "workers": ["VARCHAR"],
        "files": "BIGINT", "total_bytes": "BIGINT", "time_scale": "DOUBLE"
    }'))
    FROM read_text(run_files('run.json'))
)
SELECT run_id, campaign_id, plan_sha256, scenario, kind, arm, role,
       treatment.patch AS patch_expected, treatment.connector AS connector,
       treatment.reads AS reads, concurrency, 'c' || concurrency AS level, block, "order",
       balanced, basis, site, site_sha256, fallback_level, seed, started_wall_ns, r8_version,
       schema_version, versions, comparability, host, kv_host, kv_device, kv_dir,
       other_kv_devices, complete, note, link_bytes_per_s, instances,
       patch.lmcache_version AS patch_lmcache_version,
       patch.target_sha256 AS patch_target_sha256, patch.base_sha256 AS patch_base_sha256,
       patch.module_sha256 AS patch_module_sha256,
       expectation.sessions AS sessions, expectation.prompt_tokens AS prompt_tokens,
       expectation.output_tokens AS output_tokens, expectation.chunk_tokens AS chunk_tokens,
       expectation.chunk_bytes AS chunk_bytes, expectation.cpu_tier_bytes AS cpu_tier_bytes,
       chunk_tokens * ((prompt_tokens - 1) // chunk_tokens) AS hit_tokens_per_session,
       job, moves, tool, workers, files, total_bytes, time_scale,
       coalesce(total_bytes, sessions * (hit_tokens_per_session // chunk_tokens) * chunk_bytes)
           AS expected_bytes
FROM files
-- Their tables lack columns that the views ask for; r8 adds what is known of the reference runs.
WHERE CASE WHEN schema_version < 2
           THEN error('run ' || run_id || ' is of schema 1: ask it by `r8 sql`') ELSE true END;
