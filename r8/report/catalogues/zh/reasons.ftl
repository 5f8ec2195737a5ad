# Why a value is absent: the ids that `data/queries` writes into its `reason` columns.

# What a reason is about, where that is not the row itself: a device, a process, another metric.
reason-on = { $on }：{ $reason }

counter_regressed = 计数器倒退，或设备被更换
phase_not_unique = 该阶段出现 { $n } 次
engines_silent = { $of } 个引擎中有 { $n } 个没有报告加载用时
instances_without_rate = { $of } 个实例中有 { $n } 个没有读取速率
loads_exceed_hour = { $n } 次各 { $load_s } s 的加载超过一小时
loads_late = { $of } 次加载中有 { $n } 次在下次切换时刻仍未完成
no_busy_second = 没有任何一秒窗口超过上限的 5 %
no_device_without_kv = 没有记录不存放 KV 的设备
no_limits_stated = 没有给出限值
no_members = KV 设备没有成员设备
no_other_kv_device = 该运行没有列出其他 KV 设备
no_predicted_utilisation = 没有校准的上限，或加载超过一小时
no_process_samples = 该阶段前后没有引擎进程的采样
no_request_finished = 没有请求完成
no_requests = 该阶段没有请求
no_run_of_one_instance = 该区组中没有单实例运行
no_sample_after = 阶段结束时刻及之后没有采样
no_sample_before = 阶段开始时刻及之前没有采样
no_samples_around = 该阶段前后没有采样
no_time_passed = 没有经过时间
no_values = 该阶段没有值
no_whole_second = 没有持续整一秒的窗口
no_work = 该阶段没有作业
not_calibrated = 该运行没有 { $name } 校准
nothing_read = 设备没有读取任何数据
one_instance = 只有一个实例
one_switch = 一次切换没有节奏可言
patch_not_loaded = 引擎日志中没有补丁已加载的行
process_ended_inside = 进程在该阶段内结束
reader_unknown = 没有校准的读取方式与角色为 { $role } 的臂相同
requests_without_lookup = { $of } 个测量请求中有 { $n } 个没有查找行
requests_without_token_count = { $of } 个请求中有 { $n } 个没有 token 计数
rows_of_metric = { $metric } 有 { $n } 行
several_devices_calibrated = 校准了 { $n } 个设备
streams_without_end = { $of } 个流中有 { $n } 个没有结束
too_few_values = { $statistic } 需要 { $needs } 个值，只有 { $n } 个
values_undefined = { $of } 个值中有 { $n } 个未定义
warm_requests_failed = { $of } 个热请求中有 { $n } 个失败
workers_failed = { $of } 个工作进程中有 { $n } 个失败
workers_idle = { $of } 个工作进程中有 { $n } 个没有提供服务
