# 判定、门槛与重测为何得出该结果。事实以带单位的文字传入；检查另有 $measured 与 $limit（范围另有 $low、$high）。

## 未测量

verdict-no-run = 没有 { $scenario } 在 { $level } 档的运行
verdict-no-arm = 没有 { $arm } 组的运行
verdict-gap = { $campaign } 的区块 { $block } 没有 { $arms }
verdict-no-reference = 没有同一场景与档位的其他运行可作参考

## 不可比

verdict-basis = 运行 { $run } 为 { $measured }，发布的数字为 { $limit }：按发布数字塑形的设备不能证明发布数字
verdict-fallback-level = fallback_level（回退级别）：运行 { $run } 为 { $measured }，发布的数字来自 { $limit }
verdict-key = { $key }：发布为 { $limit }，运行 { $run } 为 { $measured }
verdict-unlike = { $key }：{ $run } 为 { $limit }，{ $other } 为 { $measured }
verdict-of-reference = 参考运行不同

## 证据无效

verdict-finding = 规则 { $rule }（{ $run }）：{ $numbers }
verdict-more-findings = 另有 { $n } 条认定
verdict-blocks-picked = 不得挑选区块
verdict-no-number = 没有可判定的数字：运行 { $run } 没有 { $metric }
verdict-not-positive = 没有可判定的数字：运行 { $run } 的 { $metric } 为 { $value }
verdict-other-unit = 没有可判定的数字：{ $metric } 的单位为 '{ $unit }'，主张的单位为 '{ $claimed }'
verdict-warm-reads = 运行 { $run } 的热读从设备取得 { $measured }，至多允许 { $limit }：据此预测会把设备计算两次

## 数字

verdict-blocks = 计划需要 { $limit } 个区块，现有 { $measured } 个
verdict-value = { $estimate_value } [{ $low_value }, { $high_value }]，声称 { $claimed }
verdict-value-alone = { $estimate_value }，声称 { $claimed }
verdict-deviation = 偏差 { $from_deviation }
verdict-point-check = 点检：已发布的数字不带方差
verdict-prediction = 测得 { $measured_value } x [{ $measured_low_value }, { $measured_high_value }]，预测 { $predicted_value } x，测得 / 预测 { $estimate_value } [{ $low_value }, { $high_value }]
verdict-prediction-alone = 测得 { $measured_value } x，预测 { $predicted_value } x，测得 / 预测 { $estimate_value }
verdict-equivalence = { $ours_value }，参考为 { $reference_blocks } 个区块的 { $reference_value }，商 { $estimate_value } [{ $low_value }, { $high_value }]
verdict-equivalence-alone = { $ours_value }，参考为 { $reference_blocks } 个区块的 { $reference_value }，商 { $estimate_value }
verdict-low-end = 下端 { $measured }，要求不低于 { $limit }
verdict-high-end = 上端 { $measured }，要求不高于 { $limit }
verdict-left-out = 未使用：{ $campaign } 的区块 { $block }，其中没有 { $arms }

## 门槛

gate-of-array = 门槛针对阵列本身
gate-no-topology = 探针没有记录 KV 设备的成员盘
gate-drives = 各次运行的探针拓扑中，KV 设备之下有 { $measured } 块盘，要求 { $limit } 块
gate-published = 已发布 { $claimed }
gate-no-run = 没有 { $scenario } 的运行
gate-no-line = array（阵列）：运行未注明发布的阵列，也没有用 --line-gbit 给出线路速率
gate-no-stress = 运行 { $run } 没有其设备的 fio 压力测试
gate-line = { $runs } 次运行的 fio 读取，线路为 { $line_bytes_per_s }
gate-line-slowest = 最慢的达到其 { $measured }，要求 { $limit }
gate-line-fastest = 最快的达到 { $measured }
gate-nodes = { $printed } 个节点共用一台阵列：R8 尚无多节点场景
gate-g4 = { $printed } 持续负载与故障注入：尚不可测
gate-last = 门槛 { $gate }：退出码 { $code }

## 重测

rerun-same-workload = 臂、档位、种子、提示与补丁摘要均相同
rerun-differs = { $what }：封存时为 { $limit }，重测为 { $measured }
rerun-certified = 重测的运行取得证书
rerun-repeats = { $of } 个输出中 { $same } 个相同；自身可重复的为 { $floor_share }
rerun-sessions = 两次运行共有的会话为 { $measured } 个，封存 { $limit } 个
rerun-chance = 相同输出如此之少的概率为 { $measured }，至少须为 { $limit }
rerun-requests = 封存 { $limit } 个请求，重测 { $measured } 个
rerun-count = 会话 { $session } 的 { $what }：封存 { $limit }，重测 { $measured }（据服务器用量）
rerun-no-time = 没有可比较的 { $metric }
rerun-time = { $metric } 重测 { $again_value }，封存 { $sealed_value }：{ $measured }，允许 { $low } 至 { $high }
