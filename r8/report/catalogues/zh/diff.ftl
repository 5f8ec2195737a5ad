# `r8 diff` 的表。

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
