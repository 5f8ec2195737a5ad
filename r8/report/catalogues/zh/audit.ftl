# The audit of the published figures, `r8 explain A1` to `A11`, and the checklist.

audit-title = 已发布数字的核算
audit-head = 只对印出的数字做算术。一个印出的数代表所有会舍入成它的值。OFF：印出的输入无论怎样取值都得不到印出的结果。线索是能得到该数的已发布数字的表达式，并不等于原因。
audit-count = 共 { $total } 项检查：{ $follows } 项成立，{ $off } 项不成立，{ $undetermined } 项无法判定。
audit-where = 印于 { $pages }
audit-answers = FOLLOWS（印出的数字允许）、OFF（无论怎样取值都不允许）、UNDETERMINED（输入未公布，或由舍入、分母决定）。
input-unpublished = { $input } 未公布
lead-same-report = 线索（同一报告）：{ $expression } 可得该数（{ $arithmetic }；{ $reports }）
lead-other-report = 线索（其他报告）：{ $expression } 可得该数（{ $arithmetic }；{ $reports }）

rule-a1 = 派生数字可由印出的数字得出
    .why = 页面上的比值之所以可信，是因为两个读数就在旁边，任何人都能相除。
    .reads = 每个派生数字的公式、印出的输入及其末位。
    .threshold = 无阈值：公式的取值区间与印出结果的取值区间有公共值，或没有。
a1-follows = { $figure } 印出 { $printed }；{ $values } = { $result }
a1-above = { $figure } 印出 { $printed }（{ $stands_for }）；{ $values } = { $result }，偏高 { $gap }
a1-below = { $figure } 印出 { $printed }（{ $stands_for }）；{ $values } = { $result }，偏低 { $gap }
a1-unpublished = { $figure } 印出 { $printed }；其公式 { $formula } 需要 { $input }，而它未公布
a1-no-readings = { $figure } 印出 { $printed }；它所比较的读数未公布

rule-a2 = 标为实测的数字以读数为依据
    .why = 把建模结果标成实测，会让人相信得比它所说的更多。
    .reads = 每个数字的页面标签与依据，以及它所依赖的数字的依据。
    .threshold = 无阈值；规格数量可以是实测数字的输入，建模与估算不可以。
a2-follows = { $figure }（{ $printed }）标为 { $label }，依据为 { $basis }
a2-off = { $figure }（{ $printed }）标为 { $label }，依据却是 { $basis }
a2-off-input = { $figure }（{ $printed }）标为 { $label }，却依赖 { $input }，后者为 { $basis }
a2-unpublished = { $figure } 称为 { $label }，但未公布任何读数

rule-a3 = 同一个量在各处印出同一个值
    .why = 同一个量的两个值不能都被引用。
    .reads = 报告、平台、场景、组、档位、指标、统计量都相同的数字；重印其他行的行；relations.toml 列出的成对数字。
    .threshold = 无阈值：两者都可能舍入过，因此须有公共值。
a3-follows = { $one }（{ $first }）与 { $other }（{ $second }）一致：{ $one_is } / { $other_is }
a3-off = { $one } 印出 { $first }，{ $other } 印出 { $second }：{ $one_is } / { $other_is }，相差 { $gap }
a3-units = { $one } 印出 { $first }，{ $other } 印出 { $second }：两种单位之间没有换算
a3-unpublished = { $input } 未公布，无从比较

rule-a4 = 正文中的范围就是其表格的范围
    .why = 漏掉某个组、档位或统计量的范围，读起来却像对全部的承诺。
    .reads = 每个范围的两端，以及它所概括的每个成员：各组、各档、各统计量。
    .threshold = 无阈值：每个成员与范围有公共值，每一端与某个成员有公共值。
a4-follows = { $printed } 包含全部 { $count } 个成员，自 { $least } 至 { $greatest }
a4-off = { $printed } 对照 { $count } 个成员，自 { $least } 至 { $greatest }；范围之外：{ $outside }；没有成员达到的端点：{ $unmet }

rule-a5 = 印出的 GB 就是几何所说的 GB
    .why = 10^9 与 1024^3 字节相差 7.4 %，超过报告承诺的偏差。
    .reads = 容量与 层数×头数×维数×token 的对照，以及读取带宽的工具所用的单位。
    .threshold = 上下各 { $tolerance_share }：文件头、目录块与不满的块。
a5-base = { $example } 等 { $count } 个数字的 GB 为 { $base } 字节，比 10^9 多 { $share }：折合十进制 { $decimal }
a5-base-follows = { $example } 等 { $count } 个数字的 GB 为 { $base } 字节（相差 { $share }）：{ $decimal }
a5-decimal = { $printed } 与 { $values } = { $bytes } B = { $decimal_gb } × 10^9 B 一致（{ $binary_gb } × 1024^3 B）
a5-binary = 印出 { $printed }，而 { $values } = { $bytes } B 为 { $decimal_gb } × 10^9 B、{ $binary_gb } × 1024^3 B：此 GB 以 1024 为底
a5-neither = 印出 { $printed }，而 { $values } = { $bytes } B 为 { $decimal_gb } × 10^9 B 或 { $binary_gb } × 1024^3 B：两者都不符

rule-a6 = 任何速率都不超过承载它的通道
    .why = 比端口或插槽还快的读，是缓存给出的，或单位有误。
    .reads = 按其应有 GB（A5）折算的带宽、端口速率，以及计入线路编码的 PCIe 速率。
    .threshold = 无阈值：最低读值也超过最高上限时为 OFF。
a6-follows = { $count } 个中最高的 { $figure }（{ $printed } = { $value }）低于 { $limit }（为其 { $times } 倍）
a6-off = { $figure }（{ $printed } = { $value }）超过 { $limit }，为其 { $times } 倍
a6-unsettled = { $figure } 印出 { $printed }；按印出的速率同时只容 { $limit }，而能定论的 { $unless } 未公布

rule-a7 = 百分位数有足够的样本
    .why = 样本少于 1 / (1 - q) 时，百分位数只是最大值的别名，一个请求就能改变它。
    .reads = 每个数字的统计量与档位：cN 档即一波 N 个请求，按实例数均分。
    .threshold = n >= 1 / (1 - q)：p90 需 { $p90 }，p99 需 { $p99 }。
a7-follows = { $metric } { $rank }，n = { $n }（需 { $needed }）：{ $count } 个数字，如 { $example }
a7-off = { $metric } { $rank } 的 n = { $n }，需 { $needed }，实为最大值：{ $count } 个数字，如 { $example }

rule-a8 = 时间、带宽与容量彼此相符
    .why = 以某速率在某时间内读写的就是容量，而三者页面都有印出。
    .reads = 页面为同一操作印出的时间、带宽、容量、token 数与吞吐，按印出的单位。
    .threshold = 无阈值：两边有公共值；整件数须含整数。
a8-whole = { $formula } = { $number }，其中含整数
a8-not-whole = { $formula } = { $number }，不含整数
a8-equal = { $left } = { $left_is } 与 { $right } = { $right_is } 一致
a8-enough = { $left } = { $left_is } 足以容纳 { $right } = { $right_is }
a8-off = { $left } = { $left_is }，而 { $right } = { $right_is }：相差 { $gap }（{ $share }）
a8-short = { $left } = { $left_is } 不足以容纳 { $right } = { $right_is }：差 { $gap }（{ $share }）

rule-a9 = 重复读数在声明的偏差之内
    .why = 没有分母的偏差可随选择成立或不成立；两种选择都列出。
    .reads = 两次运行中同组、同档、同指标、同统计量的读数，以及声明的上限。
    .threshold = 按字面取声明的上限（5 % 不是 5.4 %），并遍历舍入允许的所有取值。
a9-within = { $later } 对 { $earlier }：以前次为分母 { $of_earlier }，以后次为分母 { $of_later }；声明 { $stated }
a9-beyond = { $later } 对 { $earlier }：以前次为分母 { $of_earlier }，以后次为分母 { $of_later }，均超出声明的 { $stated }
a9-depends = { $later } 对 { $earlier }：以前次为分母 { $of_earlier }，以后次为分母 { $of_later }；{ $stated } 是否成立取决于分母或舍入

rule-a10 = 利用率模型与其隐含的加载时间相符
    .why = 两个建模得到的利用率可反推出两个加载时间，其商在别处作为提升印出。
    .reads = 切换前后的利用率、每小时切换次数、印出的单模型提升；U = 1 - n * t_load / 3600。
    .threshold = 无阈值；提升的两种读法都试：节省的时间、提高的速度。
a10-saved = 每小时切换 { $switches } 次时，加载由 { $before } 变为 { $after }：节省时间 { $saved }，与印出的快 { $claimed } 相符；若按速度读则为 { $faster }
a10-faster = 每小时切换 { $switches } 次时，加载由 { $before } 变为 { $after }：速度提高 { $faster }，与印出的 { $claimed } 相符；若按节省时间读则为 { $saved }
a10-either = 每小时切换 { $switches } 次时，加载由 { $before } 变为 { $after }：节省时间 { $saved }，速度提高 { $faster }；印出的 { $claimed } 两者皆合
a10-off = 每小时切换 { $switches } 次时，加载由 { $before } 变为 { $after }：节省时间 { $saved }，速度提高 { $faster }；印出的 { $claimed } 两者皆不合

rule-a11 = 不同平台的结果不合并
    .why = 两个平台读数之商对任何一个平台都没有说明。
    .reads = 每个派生数字及其输入的平台。
    .threshold = 无阈值。
a11-follows = { $figure } 只用 { $own }
a11-off = { $figure } 属于 { $own }，却读取 { $others }

status-stated = 已说明
status-partly = 部分说明
status-not-published = 未公布
checklist-title = 报告 { $report } 的五项核对
checklist-baseline = 是否说明对照基线
checklist-platform = 是否说明平台与拓扑
checklist-deviation = 是否说明并支撑重复测量偏差
checklist-third-party = 第三方报告
checklist-material = 复现材料
platform-stated = { $platform }
topology-stated = { $quote }
third-party-stated = { $quote }
reproduction-stated = { $quote }
baseline-named = { $scenario }：对照 { $quote }
baseline-unnamed = { $scenario }：未公布对照对象
baseline-no-reading = { $figure }（{ $printed }）：所比较的读数未公布
baseline-no-comparison = 该报告没有印出比较
deviation-stated = 声明：{ $printed }（{ $where }）
deviation-elsewhere = { $reports } 为其自身单元声明 { $printed }；本报告没有声明
deviation-pairs = 印出的 { $total } 对读数：{ $follows } 对在两种分母下都成立，{ $off } 对都不成立，{ $undetermined } 对取决于分母或舍入
deviation-no-pairs = 旁边没有印出任何成对读数
tester-unnamed = 未说明检测机构名称
raw-published = 原始数据已公布
raw-unpublished = 数字背后的原始数据未公布
tester-named = 检测机构：{ $organisation }
