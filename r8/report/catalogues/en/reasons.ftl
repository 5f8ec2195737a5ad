# Why a value is absent: the ids that `data/queries` writes into its `reason` columns.

# What a reason is about, where that is not the row itself: a device, a process, another metric.
reason-on = { $on }: { $reason }

counter_regressed = the counter went back, or the device was replaced
phase_not_unique = the phase is there { $n } times
engines_silent = { $n } of { $of } engines did not say what their load took
instances_without_rate = { $n } of { $of } instances have no read rate
loads_exceed_hour = { $n } loads of { $load_s } s are more than the hour
loads_late = { $n } of { $of } loads were not over when the next switch was due
no_busy_second = no window of a second moved more than 5 % of the ceiling
no_device_without_kv = no device without KV was recorded
no_limits_stated = no limits were stated
no_members = the KV device has no members
no_other_kv_device = the run names no other KV device
no_predicted_utilisation = no calibrated ceiling, or loads beyond the hour
no_process_samples = no engine process has samples around this phase
no_request_finished = no request finished
no_requests = no requests in this phase
no_run_of_one_instance = no run of one instance in this block
no_sample_after = no sample at or after the end of the phase
no_sample_before = no sample at or before the begin of the phase
no_samples_around = no samples around this phase
no_time_passed = no time passed
no_values = no values in this phase
no_whole_second = no window lasts a whole second
no_work = no work in this phase
not_calibrated = no { $name } calibration in this run
nothing_read = the device read nothing
one_instance = there is one instance
one_switch = one switch has no pace
patch_not_loaded = the engine log has no line of a loaded patch
process_ended_inside = the process ended inside the phase
reader_unknown = no calibration reads as an arm of the role { $role } does
requests_without_lookup = { $n } of { $of } measured requests have no lookup line
requests_without_token_count = { $n } of { $of } requests have no token count
rows_of_metric = { $n } rows of { $metric }
several_devices_calibrated = { $n } devices were calibrated
streams_without_end = { $n } of { $of } streams have no end
too_few_values = { $statistic } needs { $needs } values, there are { $n }
values_undefined = { $n } of { $of } values are undefined
warm_requests_failed = { $n } of { $of } warm requests failed
workers_failed = { $n } of { $of } workers failed
workers_idle = { $n } of { $of } workers did not serve
