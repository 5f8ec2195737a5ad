# `r8 verify`：每一步看到了什么，以及为何不接受一个包。

seal-not-reached = 未执行：{ $step } 未通过
seal-evidence-refused = 不接受：{ $error }
seal-step-failed = 无法读取：{ $kind }：{ $error }

## 归档及其字节

seal-a-directory = 是目录而不是归档：无需解包
seal-unpacked = { $files } 个普通文件，没有越界，也没有多余字节
seal-archive-grows = 归档解包后超过 { $most_bytes }，即其大小所允许的上限
seal-archive-torn = 归档残缺或不是归档：{ $error }
seal-archive-other-bytes = 归档含有不属于任何文件的字节
seal-member-twice = 成员 { $member } 重复或次序不对
seal-members-too-many = 归档的成员超过 { $most } 个
seal-member-grows = 成员 { $member } 声称 { $size_bytes }，超过其归档所能容纳
seal-member-no-file = 成员 '{ $member }' 不是普通文件
seal-member-climbs-out = 成员 '{ $member }' 越出归档
seal-member-elsewhere = 成员 '{ $member }' 不在 { $top }/ 之内
seal-member-name = 成员“{ $member }”的名称不合规：最多 { $levels } 级，仅限 A-Z a-z 0-9 . _ -
seal-member-other-header = 成员 { $member } 的头部不是 R8 所写的
seal-digests = { $files } 个文件，摘要均与清单相符
seal-file-unlisted = { $file } 不在清单中
seal-file-missing = 缺少 { $file }
seal-file-differs = { $file } 与清单不符

## 声明及其签名

seal-statement = 关于清单 { $manifest } 的 in-toto 测试结果
seal-other-manifest = 声明针对清单 { $named }，而此处为 { $manifest }：旧封印配新内容
seal-no-envelope = 信封不是已签名的声明：{ $error }
seal-other-payload = 信封不是已签名的声明：载荷类型为 '{ $payload }'
seal-not-canonical = 信封不是已签名的声明：不是规范形式
seal-signed = { $key } 的 { $kind } 签名
seal-key-given = 即所给的公钥
seal-key-inside = 即包内的公钥：用 --key 才知道属于谁
seal-unsigned = 此包无人签名
seal-unsigned-accepted = 未签名，仍予接受：无从得知由谁封存
seal-other-key = 由公钥 { $key } 签名，而不是 { $wanted }
seal-bad-signature = 签名与声明及公钥 { $key } 不符

## 内容

seal-runs = { $runs } 次运行与 { $references } 次参考运行，模式版本 { $versions }
seal-no-run = 包内没有运行
seal-other-run = 目录 { $folder } 内是运行 { $run }
seal-sealed-by-same-code = bundle.json 相符；由 r8 { $version } 封存，与此代码相同
seal-sealed-by-other-code = bundle.json 相符；由 r8 { $version } 封存，代码与此不同
seal-other-format = 包的格式为 { $format }，此 R8 读取 { $ours }
seal-inventory-differs = bundle.json 关于 '{ $key }' 的说法不同
seal-unreadable = 无法读取 { $file }：{ $error }
seal-cells = { $campaign }：计划的 { $planned } 个单元全部在内
seal-cells-left-out = { $campaign }：计划的 { $planned } 个单元缺少 { $n } 个：{ $cells }
seal-cell-unplanned = { $campaign }：{ $cell } 不在计划的 { $planned } 个单元之中
seal-plan-changed = 运行 { $run } 中的计划不是其活动所声明的计划
seal-plans-differ = 此活动的各次运行带有 { $plans } 份不同的计划
seal-plan-of-no-cell = 计划所列的 '{ $cell }' 不是单元
plan-by-event = 计划：每次运行的 run_begin 事件
plan-by-site = 计划：站点文件，因为这些运行不带活动自己的计划
plan-by-runs = 计划：仅凭运行本身，因为没有记录计划
seal-recomputed = { $rows } 行由原始行重新计算，全部相等
seal-other-claims = 此 R8 所带的主张与封存此包的不同
seal-rows-differ = { $part }：声明 { $stated } 行，计算得 { $computed } 行
seal-values-differ = { $of } 行中 { $n } 行不同：{ $rows }
seal-not-recomputed = 无法重新计算判定
seal-results = { $result }：{ $reproduced } 项主张复现
seal-other-results = 已签名的声明所列结果不同
seal-secret-found = { $run }：{ $file } 第 { $line } 行有一个机密（{ $kind }）；共 { $n } 行
seal-not-redacted = 没有删去内容，也没有此类声明
seal-taken-out = 已删去：{ $n } 个 { $kind }
seal-redacted = 已查看 { $files } 个文件（含 { $columns } 个表列）中的 { $texts } 段文本：没有形似地址、机器名、序列号、用户或密钥的内容
seal-name-left = { $file } 中有可识别的内容：{ $found } 形似 { $kind }
seal-file-left = { $file } 不得随脱敏包传出
seal-nothing-withheld = 没有保留不给的内容；raw/ 的 { $files } 个文件都在
seal-originals-withheld = 保留未给：原始记录的运行（{ $runs } 份清单仅给出摘要）
seal-raw-withheld = raw/：{ $kind } { $n } 个
seal-plan-digest-withheld = { $runs } 次运行所声明的计划摘要，其中名称已被替换
seal-plan-withheld = 运行所列的单元全部在内；说明计划的文件被保留未给
