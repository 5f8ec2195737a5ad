-- Every view, in the order in which they build on each other: the one list of these files.
--
-- From the top of the checkout:
--     duckdb
--     .read data/queries/load.sql
--     SELECT * FROM metrics;
-- That reads every sealed run below data/runs/. To choose other runs, first
--     SET VARIABLE r8_run_dirs = ['data/runs/r1-parallel-read/<run_id>'];
-- After choosing other runs, read this file again: what several views are made from is a TABLE,
-- computed once while its file is read (a session of days would be read a dozen times otherwise).
--
-- Rules for all of them
--   * Durations are differences of instants of one monotonic clock, in ns; sizes are bytes. Nothing
--     is rounded; sums are sums of integers, so the order of rows cannot change a digit.
--   * Nothing outside this folder sums bytes or subtracts instants; a test holds that.
--   * A value that cannot be had is NULL with its reason, never 0.
--   * No view knows the name of an arm or of a scenario: `runs` says what an arm is for (role),
--     how it reads, and which kind of run it is.
.read data/queries/macros.sql
.read data/queries/tables.sql
.read data/queries/runs.sql
.read data/queries/phases.sql
.read data/queries/request_times.sql
.read data/queries/request_statistics.sql
.read data/queries/rates.sql
.read data/queries/devices.sql
.read data/queries/device_reads.sql
.read data/queries/calibration.sql
.read data/queries/engine_log.sql
.read data/queries/bytes.sql
.read data/queries/admissions.sql
.read data/queries/prediction.sql
.read data/queries/transfers.sql
.read data/queries/bandwidth.sql
.read data/queries/instances.sql
.read data/queries/checkpoints.sql
.read data/queries/utilisation.sql
.read data/queries/metrics.sql
.read data/queries/balance.sql
.read data/queries/outputs.sql
.read data/queries/growth.sql
.read data/queries/network.sql
.read data/queries/residency.sql
.read data/queries/arms.sql
.read data/queries/timelines.sql
.read data/queries/claims.sql
