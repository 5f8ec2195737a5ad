-- run.json, flattened; one row a run.
--   role       what the arm is for: array, local, pool, recompute, ...
--   reads      how its reader reads the device: serial or parallel; NULL where it does not read, or
--              nobody can say. It decides which calibration predicts it.
--   kind       kv: an engine answers requests; transfer: workers move files
--   hit_tokens_per_session  whole chunks of the prompt less its last token
--   expected_hit_bytes      what the whole cell must read from its device
-- Runs of schema 1 name no role; r8 puts what it knows of them into the variable r8_upgraded
-- (run id -> role, reads) before it reads this file. Without it they have none.
CREATE OR REPLACE TABLE runs AS
WITH files AS (
    SELECT unnest(from_json(content, '{
        "schema_version": "BIGINT", "run_id": "VARCHAR", "campaign_id": "VARCHAR",
        "scenario": "VARCHAR", "arm": "VARCHAR", "role": "VARCHAR", "reads": "VARCHAR",
        "concurrency": "BIGINT", "block": "BIGINT", "order": "BIGINT", "balanced": "BOOLEAN",
        "basis": "VARCHAR", "site": "VARCHAR", "site_sha256": "VARCHAR", "rung": "VARCHAR",
        "seed": "BIGINT", "started_wall_ns": "BIGINT", "r8_version": "VARCHAR",
        "versions": "MAP(VARCHAR, VARCHAR)", "comparability": "MAP(VARCHAR, VARCHAR)",
        "host": "MAP(VARCHAR, VARCHAR)", "kv_device": "VARCHAR", "kv_dir": "VARCHAR",
        "other_kv_devices": ["VARCHAR"], "instances": ["VARCHAR"],
        "patch": {"expected": "VARCHAR", "lmcache_version": "VARCHAR", "target_sha256": "VARCHAR",
                  "base_sha256": "VARCHAR", "module_sha256": "VARCHAR"},
        "expectation": {"sessions": "BIGINT", "prompt_tokens": "BIGINT", "output_tokens": "BIGINT",
                        "chunk_tokens": "BIGINT", "chunk_bytes": "BIGINT",
                        "cpu_tier_bytes": "BIGINT"},
        "complete": "BOOLEAN", "note": "VARCHAR", "link_bytes_per_s": "BIGINT",
        "recompute": "BOOLEAN",
        "work": {"job": "VARCHAR", "moves": "VARCHAR", "tool": "VARCHAR", "workers": "BIGINT",
                 "files": "BIGINT", "total_bytes": "BIGINT", "time_scale": "DOUBLE"}
    }'))
    FROM read_text(run_files('run.json'))
),
-- Of runs that do not say it themselves.
known AS (
    SELECT *, CAST(getvariable('r8_upgraded')
                   AS MAP(VARCHAR, STRUCT(role VARCHAR, reads VARCHAR)))[run_id] AS upgraded
    FROM files
)
SELECT run_id, campaign_id, scenario, arm, coalesce(role, upgraded.role) AS role,
       coalesce(reads, upgraded.reads) AS reads,
       CASE WHEN work IS NULL THEN 'kv' ELSE 'transfer' END AS kind,
       concurrency, 'c' || concurrency AS level, block, "order", balanced, basis, site, site_sha256,
       rung, seed, started_wall_ns, r8_version, schema_version, versions, comparability, host,
       kv_device, kv_dir, other_kv_devices, instances, complete, note, link_bytes_per_s,
       coalesce(recompute, false) AS recompute,
       work.job AS job, work.moves AS moves, work.tool AS tool, work.workers AS workers,
       work.total_bytes AS work_bytes, coalesce(work.time_scale, 1) AS time_scale,
       patch.expected AS patch_expected, patch.lmcache_version AS patch_lmcache_version,
       patch.target_sha256 AS patch_target_sha256, patch.base_sha256 AS patch_base_sha256,
       patch.module_sha256 AS patch_module_sha256,
       expectation.sessions AS sessions, expectation.prompt_tokens AS prompt_tokens,
       expectation.output_tokens AS output_tokens, expectation.chunk_tokens AS chunk_tokens,
       expectation.chunk_bytes AS chunk_bytes, expectation.cpu_tier_bytes AS cpu_tier_bytes,
       chunk_tokens * ((prompt_tokens - 1) // chunk_tokens) AS hit_tokens_per_session,
       sessions * ((prompt_tokens - 1) // chunk_tokens) * chunk_bytes AS expected_hit_bytes
FROM known;
