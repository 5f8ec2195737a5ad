# `r8 diff` and `r8 gate`.

diff-claim = 编号
diff-published = 已发布
diff-measured = 测得
diff-n = 区块数
diff-interval = 区间
diff-deviation = 偏差
diff-verdict = 判定
diff-reason = 理由
diff-unmeasured = 另有 { $count } 个数字 R8 无法测量；--all 给出原因
diff-count = { $total } 项：{ $counts }

REPRODUCED = 已复现
DEVIATES = 偏离
INCONCLUSIVE = 无定论
INVALID = 证据无效
NOT_COMPARABLE = 不可比
NOT_MEASURED = 未测量

reason-basis = basis（依据）：发布为 measured，运行 { $run } 为 { $basis }：按发布数字塑形的设备不能证明发布数字
reason-rung = rung（台阶）：发布为 cluster，运行 { $run } 为彩排回退级别 '{ $rung }'
reason-key = { $key }：发布为 '{ $ours }'，运行 { $run } 为 { $theirs }
reason-unlike = { $key }：{ $run } 为 { $ours }，{ $other } 为 { $theirs }
reason-no-run = 没有 { $scenario } 在 { $level } 档的运行
reason-no-arm = 没有 { $arm } 组的运行
reason-few = 计划需要 { $needed } 个区块，现有 { $n } 个；{ $rest }
reason-value = { $found }，声称 { $claimed }，界限 { $low } 至 { $high }，偏差 { $deviation }；点检：已发布的数字不带方差{ $more }
reason-least = { $found }，声称 { $claimed }，界限 { $low } 或以上；点检：已发布的数字不带方差{ $more }

gate-foreign = 运行 { $run } 为 { $basis }，回退级别 '{ $level }'：门槛针对阵列本身
gate-no-topology = 探针没有记录 KV 设备的成员盘
gate-drives = 各次运行的探针拓扑中，KV 设备之下有 { $found } 块盘，要求 { $wanted } 块
gate-claim = 已发布 { $claimed }；{ $reason }
gate-no-run = 没有 { $scenario } 的运行
gate-no-line = array（阵列）：运行未注明发布的阵列，也没有用 --line-gbit 给出线路速率
gate-invalid = 规则 { $rule } 不接受运行 { $run }
gate-no-stress = 运行 { $run } 没有其设备的 fio 压力测试：{ $reason }
gate-line = { $n } 次运行中 fio 读取为 { $line_bytes_per_s } 的 { $lowest_share } 至 { $highest_share }，要求 { $wanted_share }
gate-nodes = { $printed } 个节点共用一台阵列：R8 尚无多节点场景
gate-g4 = { $printed } 持续负载与故障注入：尚不可测
gate-last = 门槛 { $gate }：退出码 { $code }
