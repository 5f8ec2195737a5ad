# 证书：每项检查的陈述；`.otherwise` 说明未成立时的含义。
# 事实以带单位的文字传入。每项检查：$measured、$limit（范围另有 $low、$high 与 $side）。每条规则：标题、
# .why、.reads 与 .threshold（其中列出常量）。

mark-refuted = 【被推翻】
mark-unknown = 【未知】
mark-not-applicable = 【不适用】
nothing-to-look-at = 没有可查看的内容
finding-line = `{ $run }` 的 `{ $rule }` { $answer }：{ $checks }。{ $meaning }

## 多条规则共用

no-read-counter = { $device }：窗口前后没有读计数
    .otherwise = 磁盘探针在窗口两侧没有 { $device } 的采样。
no-measure-window = 没有测量窗口
    .otherwise = 缺少 measure_begin 或 measure_end 事件。
no-measured-request = 没有被测请求
    .otherwise = 运行没有 measure 阶段的请求。
no-instance = 运行没有列出实例
    .otherwise = run.json 没有列出引擎实例。
no-engine-log = { $instance }：没有引擎日志
    .otherwise = 见 raw/server-{ $instance }.log。
no-capture = 未采集环境（{ $moment }）
    .otherwise = 缺少该时刻的 `environment` 事件。
no-block-device = 回退级别 { $fallback_level } 上没有块设备
    .otherwise = 在回退级别 { $fallback_level } 上，KV 不在任何块设备上，因此没有块设备的字节可计。
no-kv-engine = 作业 { $job } 不使用 KV 引擎
    .otherwise = 没有可查询的引擎。
recompute-reads-no-kv = 重算臂不读取 KV
    .otherwise = 由规则 C7 检查。
rule-not-applied = 未应用规则 { $rule }
    .otherwise = 主张需要此 R8 的每条规则。

nfs-not-read = NFS 挂载 { $mount }：窗口前后没有读取其计数
nfs-captured-only = NFS 挂载 { $mount } 在窗口内从服务器取得 { $read_bytes }：仅作记录
nfs-lacks-proven-counter = 若以此计数代替设备计数即可得知
    .otherwise = 该计数从未与某台服务器的读取核对过。
nfs-lacks-mount-of-files = 由每个文件所在的挂载即可得知
    .otherwise = 服务器自己的设备仍不可见。
nfs-lacks-writes-of-server = 只能从服务器得知
    .otherwise = 服务器仍在写入的内容不在本机计数。
nfs-lacks-age-of-mount = 由挂载的时长与计数即可得知
    .otherwise = 它们在挂载期间只增不减。
nfs-lacks-link = 若声明链路并有其网卡的接收计数即可得知

## C1

rule-c1 = KV 文件位于该臂所指的设备上
    .why = 放在另一块盘上的池，测的就是那块盘。
    .reads = after_drop 的驻留记录（每个文件 st_dev 的设备）；拓扑中 run.kv_device 的 `mount`；run.kv_dir
    .threshold = 每个文件；无容差
c1-no-file-seen = 清缓存后没有查看任何 KV 文件
    .otherwise = 缺少驻留记录。
c1-files-on-device = { $files } 个 KV 文件中 { $here } 个在 { $device } 上，{ $measured } 个在别处（{ $places }），{ $unknown } 个未知
    .otherwise = 该臂为 { $directory } 指明 { $device }；请查看站点的挂载。
c1-no-mount = 拓扑中没有 { $device } 的挂载点
    .otherwise = 拓扑探针没有看到它。
c1-directory-on-mount = KV 目录 { $directory } 位于 { $device } 的挂载点 { $mounts } 之下：{ $measured }
    .otherwise = KV 目录位于该设备的挂载点之外。

## C2

rule-c2 = 写入已落盘
    .why = 脏页不会被清除：仍在写入的内容会从内存读出。
    .reads = 事件 `durable`（文件数、字节、应有值、quiet_ns）；KV 设备的磁盘 `write_sectors`，自其前 quiet_ns 至 drop_begin
    .threshold = 文件数与字节完全相符；静默时段内至多写入 { $written_bytes }（文件系统自身的日志，少于一个正在写的块），采样至少覆盖其 { $sampled_share }
c2-not-durable = 没有 `durable` 事件
    .otherwise = 没有人检查写入是否已落盘。
c2-files-written = 已写入 { $measured } 个文件 = 应有 { $limit } 个
    .otherwise = 磁盘上的池不是各会话应留下的内容；见引擎日志的 Stored 行。
c2-bytes-written = 已写入 { $measured } = 应有 { $limit }
    .otherwise = 磁盘上的池不是各会话应留下的内容；见引擎日志的 Stored 行。
c2-pool-empty = 已写入 { $measured }
    .otherwise = 写入阶段没有在磁盘上留下任何内容。
c2-pool-unknown = 池的 { $key } 未知
    .otherwise = durable 事件缺少 { $key }。
c2-covers-the-cell = 池 { $measured } >= 被测会话的 { $limit }
    .otherwise = 被测会话不可能全部在磁盘上。
c2-no-quiet-interval = 清缓存前没有静默时段
    .otherwise = 缺少 drop_begin 事件或 quiet_ns。
c2-writes-not-sampled = { $device }：清缓存前 { $quiet_ns } 写计数未被采样
    .otherwise = 磁盘探针在该处没有读数。
c2-writes-quiet = 清缓存前最后 { $span_ns }，{ $device } 写入 { $measured }，允许 { $low } 至 { $high }
    .otherwise = { $side ->
        [below] 写计数倒退了。
       *[other] 清缓存时写入尚未完成：脏页不会被清除。
    }

## C3

rule-c3 = 页缓存已清空，且其中没有 KV 文件
    .why = 清缓存可能失败、挂起，或触及另一个文件系统；读取就会是热的。
    .reads = 事件 `drop_end`（rc）；drop_end 与 measure_begin 之间 after_drop 的驻留记录，连同方法自检
    .threshold = rc 0；每个文件至多 { $most_share } 驻留；文件数与磁盘上应有的相同；自检把已逐出的文件看作已逐出
c3-no-drop = 没有清缓存
    .otherwise = 页缓存从未被清空：读取可能是热的。
c3-drop = 清缓存返回 { $measured }
    .otherwise = 清缓存失败：「{ $error }」。
c3-residency-not-read = 清缓存与测量之间的页缓存驻留未知
    .otherwise = 没有驻留记录。
c3-files-looked-at = 查看了 { $measured } 个文件 = 应有 { $limit } 个
    .otherwise = 并非每个 KV 文件都被查看。
c3-self-test = { $limit } 个文件中 { $passed } 个通过方法自检
    .otherwise = 该方法未能把已逐出的文件看作已逐出：须由文件所有者或 root 读取驻留。
c3-resident = { $known } 个文件中 { $measured } 个驻留超过 { $most_share }，{ $size_bytes } 中 { $cached_bytes } 在页缓存内，最高为 { $worst } 的 { $worst_share }，{ $lost } 个文件未知
    .otherwise = KV 文件仍在页缓存内：清缓存未触及该文件系统。
c3-residency-unknown = { $lost } 个文件未知，其余 { $known } 个没有驻留超过 { $most_share } 的
    .otherwise = 缺少这些文件的大小或驻留：「{ $reason }」。

## C4

rule-c4 = 字节平衡：引擎、设备、成员盘、进程
    .why = 只有离开设备的字节才是从它读取的；仅凭日志指不出层级。
    .reads = measure 阶段的指标 engine_hit_bytes、device_read_bytes、process_read_bytes；成员盘与 KV 层之外整块设备的磁盘 `read_sectors`；没有 KV 引擎时，以各工作进程自述搬运的字节代替命中
    .threshold = 双向 { $tolerance_share }（元数据、一个采样间隔）；进程至少为设备的 { $floor_share }，至多高出 { $tolerance_share } 与 { $excess_bytes } 中较大者，否则须有其他设备的读取与之相符（清缓存后会重新读取库：曾见 7-14 MiB）；在网络之后，接收字节与设备字节之比须在本次运行自身校准的 { $wire_share } 之内
c4-hits-unknown = 引擎命中字节未知
    .otherwise = 引擎日志缺少查找行。
c4-nothing-hit = 引擎命中 { $measured }，{ $device } 读取 { $read_bytes }
    .otherwise = 引擎没有加载 KV：它重算了。
c4-device-against-hits = { $device } 读取 { $read_bytes } / 引擎命中 { $hit_bytes } = { $measured }，应在 { $low } 至 { $high } 内
    .otherwise = { $side ->
        [below] 离开设备的字节少于命中：其余由缓存提供。
       *[other] 设备读取多于命中：另有读取者。
    }
c4-moved-unknown = 不知道各工作进程的字节数
    .otherwise = 某个工作进程没有说明它搬运了多少。
c4-device-against-moved = { $device } 读取 { $read_bytes } / 工作进程搬运 { $moved_bytes } = { $measured }，应在 { $low } 至 { $high } 内
    .otherwise = { $side ->
        [below] 离开设备的字节少于所加载的：其余由缓存提供。
       *[other] 设备读取多于所加载的：另有程序在读。
    }
c4-window-writes = 该窗口是写入
    .otherwise = W1 核对它的写入，W2 核对读回的内容。
c4-members = 成员盘读取 { $measured }，对应 { $device } 的 { $read_bytes }，允许 { $low } 至 { $high }
    .otherwise = 成员盘与上层设备不符：某成员另有用途，或某路径被计了两次。
c4-members-unknown = 成员盘 { $members }：没有读计数
    .otherwise = 有成员盘未被采样。
c4-process = 进程读取 { $measured } >= { $limit }（设备的 { $floor_share }）
    .otherwise = 另有进程读取该设备：这些字节不属于引擎。
c4-process-unknown = 进程 read_bytes 未知
    .otherwise = 进程探针没有读数。
c4-process-excess = 进程比设备多读 { $measured } <= { $limit }
c4-elsewhere = 进程比设备多读 { $excess_bytes }，允许 { $allowed_bytes }；其他设备读取 { $measured } >= { $limit }
    .otherwise = 引擎多读的字节不来自任何被观察的设备。
c4-elsewhere-unknown = 进程比设备多读 { $excess_bytes }，允许 { $allowed_bytes }；其他设备的读取未知
    .otherwise = 引擎读取多于 KV，而其他设备未被采样。
c4-no-wire = { $device } 之后没有网线
    .otherwise = 其字节不经网络：没有网卡可计数。
c4-wire = 线上 { $wire_bytes } / 设备 { $read_bytes } = { $now_ratio }，校准 { $calibrated_bytes } / { $known_bytes } = { $calibrated_ratio }：为其 { $measured }，应在 { $low } 至 { $high } 内
    .otherwise = 网卡收到的字节与设备给出的不同。
c4-wire-not-calibrated = 此运行未校准线上字节与载荷之比
    .otherwise = 各阶段之前须有一次已知大小的 O_DIRECT 读取；它需要读取该设备的权限。
c4-wire-unknown = 网卡收到的字节未知
    .otherwise = 网卡探针没有读数。

## C5

rule-c5 = 没有读取其他 KV 设备
    .why = 被比较的层可能替与之比较的臂供给内容。
    .reads = run.other_kv_devices；测量窗口内每个设备的磁盘 `read_sectors`
    .threshold = 每个都低于该单元 KV 字节的 { $most_share }
c5-no-other-device = 站点没有列出其他 KV 设备
    .otherwise = 没有其他层可供 KV 来源。
c5-other-device-read = { $device } 读取 { $read_bytes } / KV { $kv_bytes } = { $measured } < { $limit }
    .otherwise = 测量期间读取了 { $device }：KV 可能来自它。

## C6

rule-c6 = 每个请求恰好命中其完整块，且无一来自内存
    .why = 前缀缓存或内存层会在设备之前作答；未命中则重算。
    .reads = 每个被测请求的查找行与取回行；每个实例的事件 `server_config`（enable_prefix_caching、chunk_tokens、cpu_tier_bytes，从运行中的服务器回读）；指标 engine_hit_bytes 与 device_read_bytes
    .threshold = 恰好 chunk*floor((prompt-1)/chunk) 个词元；0 个重算词元；设备未覆盖的命中至多 { $most_share }
c6-hit-tokens = { $requests } 个请求中 { $exact } 个命中 { $chunk }*floor((prompt-1)/{ $chunk }) = { $planned } 个词元，{ $unseen } 个没有查找行
    .otherwise = 引擎日志缺少某个请求的查找行。
c6-wrong-hit-tokens = { $requests } 个请求中 { $exact } 个命中 { $chunk }*floor((prompt-1)/{ $chunk }) = { $planned } 个词元，{ $first } 命中 { $hit } / { $want }，{ $unseen } 个没有查找行
    .otherwise = 有请求加载的并非恰好是其写入的块；见引擎日志中它的查找行。
c6-prefix-cache = 引擎自身前缀缓存中最多词元 { $measured } = { $limit }，{ $requests } 个请求中 { $known } 个已知
    .otherwise = 引擎用自己的前缀缓存作答，或没有说明。
c6-retrieved = { $requests } 个请求取回 { $measured } 个词元 = { $limit }
    .otherwise = 找到的没有全部加载：其余由引擎重算。
c6-config-not-read = { $instance }：未读取运行中服务器的配置
    .otherwise = 请求某项设置不能证明它已生效。
c6-setting = { $instance }：{ $key } { $measured } = { $limit }
    .otherwise = 运行中服务器的 { $key } 与计划所设不同。
c6-nothing-hit = 引擎命中 { $measured }
    .otherwise = 引擎没有加载 KV：它重算了。
c6-dram-hits = 设备未覆盖的命中 { $measured } <= { $limit }
    .otherwise = 内存层提供了命中：没有日志行指明层级，字节指明了。
c6-dram-unknown = 来自内存层的字节未知
    .otherwise = 缺少命中字节或设备字节。

## C7

rule-c7 = 重算臂没有读取 KV
    .why = 基线若加载了本应计算的一部分，只是抬高了它自己。
    .reads = run.recompute；测量窗口内每个 KV 设备的磁盘 `read_sectors`；事件 `server_config` 的 `kv_connector`；查找行与取回行
    .threshold = 低于该单元在有层时读取量的 { $most_share }（库、元数据）；运行中的服务器没有连接器；找到 0 个词元
c7-no-prompt = 作业 { $job } 不计算提示
    .otherwise = 没有提示，就没有 KV。
c7-arm-has-kv = 臂 { $arm } 有 KV 层
    .otherwise = 只有重算臂必须不读取 KV。
c7-device-read = { $device } 读取 { $read_bytes } / 有 KV 的单元 { $kv_bytes } = { $measured } < { $limit }
    .otherwise = 读取了 { $device }：该臂并非只做计算。
c7-connector = { $instance }：kv_connector { $measured } = { $limit }
    .otherwise = 运行中的服务器有 KV 连接器：它可能加载本应计算的内容。
c7-connector-unknown = { $instance }：运行中服务器的 KV 连接器未知
    .otherwise = 未回读服务器自身的配置。
c7-tokens-found = 命中词元 { $hit }，前缀缓存 { $computed }，取回 { $retrieved }；最多 { $measured } = { $limit }
    .otherwise = 有被测请求在缓存中找到词元。

## C8

rule-c8 = 计数器未回退，设备未变，采样无缺口
    .why = 更换的设备会重新开始计数：跨越它的差值没有意义。
    .reads = 测量窗口内所有 KV 设备的磁盘计数与纪元；窗口两侧拓扑的 diskseq、state、members、kind；控制器与链路的状态；每个实例的进程采样
    .threshold = 无倒退、单一纪元、同一身份；没有超过 { $gap_ns } 的缺口（探针每秒采样十次）
c8-not-sampled = 窗口内 { $devices } 个 KV 设备中 { $seen } 个被采样
    .otherwise = 磁盘探针没有观察每个 KV 设备。
c8-backwards = { $steps } 步计数中 { $measured } 步倒退
    .otherwise = 设备被更换或其计数重新开始：窗口内的字节数没有意义。
c8-epochs = { $steps } 步计数中 { $measured } 步开始新纪元
    .otherwise = 设备被更换或其计数重新开始：窗口内的字节数没有意义。
c8-gap = 采样最长间隔 { $measured } <= { $limit }
    .otherwise = 探针在窗口内停过；倒退可能藏在其中。
c8-unchanged = { $device }：diskseq { $diskseq }，状态与成员不变
c8-changed = { $device }：{ $changes }
    .otherwise = { $device } 被更换或改变了状态。
c8-topology-not-read = { $device }：窗口两侧未都读取拓扑
    .otherwise = 没有人查看设备是否仍是同一个。
c8-no-controller-state = 窗口前后没有控制器状态（{ $transports }）
    .otherwise = NVMe 探针没有读数，而失效的链路不会显示在磁盘计数中。
c8-state = { $probe } { $device }：{ $counter } { $words }，{ $samples } 次采样，{ $lost } 次无值，{ $epochs } 个纪元
    .otherwise = { $device } 在整个窗口内并非一直在线，或不是同一个。
c8-no-process = { $instance }：没有进程被采样
    .otherwise = 进程探针没有读数。
c8-process = { $instance }：{ $processes } 个进程中 { $measured } 个贯穿整个窗口
    .otherwise = 引擎在窗口内重启过。

## C9

rule-c9 = 没有内容快于所声明的链路到达
    .why = 快于链路的读取，是从链路这一侧的缓存读取。
    .reads = run.link_bytes_per_s；KV 设备的磁盘 `read_sectors`、`in_flight`；网卡的接收计数
    .threshold = 最快的 { $window_ns } 至多为链路加 { $tolerance_share }（时间戳、标称速率），减去其开始时在途的字节
c9-no-link = 没有为 { $device } 声明链路（{ $kind }）
    .otherwise = 主机与设备之间没有网络，就没有可超出的链路。
c9-kind-unknown = { $device }：类型与传输方式未知
    .otherwise = 拓扑探针没有读数。
c9-link-not-declared = { $device } 经 { $fabrics } 到达，其链路未声明
    .otherwise = 请在站点文件中声明该设备的 link_bytes_per_s。
c9-counter-not-read = { $device }：窗口前后未读取 { $counter }
    .otherwise = 探针没有读数。
c9-one-reading = { $device }：{ $counter } 读取过稀
    .otherwise = 一次读数得不出速率。
c9-peak = { $device } { $counter }：{ $span_ns } 内最多 { $moved_bytes } = { $measured } <= { $limit }（链路 { $link_bytes_per_s }，另加 { $tolerance_share }）
    .otherwise = 字节到达快于所声明链路的承载：链路这一侧有缓存，或声明过慢。

## C10

rule-c10 = 负载客户端不是瓶颈
    .why = 迟到的客户端施加的负载更小；缓慢的客户端计的是它自己的时间。
    .reads = 被测请求的计划时刻与发送时刻；对空服务器的校准行 `client`；没有 KV 引擎时，各工作进程的时刻
    .threshold = 发送延迟至多为 TTFT p50 的 { $lag_share }（主张的容差）；TTFT 误差中位数至多 { $error_share }（其五分之一）；没有 KV 引擎时：没有工作进程落后起跑线超过最短加载的 { $barrier_share }，也没有提前的；同一起跑线上的引擎：共同加载的时间不少于最长加载的 { $overlap_share }
c10-no-ttft = 没有可比较的 TTFT
    .otherwise = 测量阶段没有有限的 TTFT p50。
c10-send-lag = 最大发送延迟 { $measured } <= { $limit }（TTFT p50 的 { $most_share }）
    .otherwise = 客户端未能及时发出整批请求：实际负载更低。
c10-lag-unknown = { $requests } 个请求中 { $known } 个的发送延迟已知
    .otherwise = 有请求缺少计划时刻或发送时刻。
c10-not-calibrated = 没有客户端对空服务器的校准
    .otherwise = 请运行 `load_client calibrate`。
c10-calibrated-requests = 以 { $measured } 个请求校准 >= 并发 { $limit }
    .otherwise = 客户端校准时的负载小于其实际负载。
c10-own-error = { $quantity } { $measured }，应在 { $low } 至 { $high } 内（TTFT p50 的 { $most_share }）
    .otherwise = 客户端自身误差相对其所计时间过大，或未经校准。
c10-no-worker = 没有可计时的工作进程
    .otherwise = 没有工作进程完成测量阶段。
c10-instants-unknown = { $workers } 个工作进程没有时刻
    .otherwise = 它们的行缺少时刻。
c10-barrier-lag = 落后于起跑线至多 { $measured } <= { $limit }（最短者的 { $most_share }）
    .otherwise = 各工作进程没有同时工作：负载低于计划。
c10-early = { $workers } 个工作进程中 { $measured } 个早于起跑线开始
    .otherwise = 各工作进程没有同时工作：负载低于计划。
c10-overlap = { $engines } 个引擎共同加载 { $measured } >= { $limit }（最长加载的 { $least_share }）
    .otherwise = 各引擎没有同时加载：每个都独占了设备。

## C11

rule-c11 = 该臂所指的代码确实生效
    .why = 补丁若应用过迟、应用到另一棵树，或加载而未启用，就什么都没改变，却照样被测量。
    .reads = run.patch 与事件 `patch_state`；引擎的 R8-PATCH loaded 行与 read 行
    .threshold = 模块的 SHA-256 完全相符；字节恰好为各会话的块；段数至少为字节/分段大小；0 次未命中。未打补丁：没有 R8-PATCH 行且摘要为基础文件，或 mode=serial
c11-no-patch-state = run.json 中没有补丁状态
    .otherwise = 没有人查看运行的是哪个 LMCache 文件。
c11-no-patch-event = 没有 `patch_state` 事件
    .otherwise = 启动前没有查看该文件。
c11-state-repeated = 启动前的补丁状态：{ $fields } 个字段中 { $measured } 个与 run.json 不同（{ $changed }）
    .otherwise = 代码树在计划与启动之间改变了。
c11-no-module-digest = 未记录读取模块的摘要
    .otherwise = run.json 缺少它。
c11-target-patched = 目标文件 { $target } 不同于基础文件 { $base }
    .otherwise = 该臂名为已打补丁，却在基础文件上运行。
c11-not-loaded = { $instance }：{ $lines } 条相关日志行中有 0 条 R8-PATCH loaded
    .otherwise = 运行中的引擎从未加载补丁：应用过迟，或应用到另一棵树。
c11-module = { $instance }：引擎报告模块 { $found } = 计划的 { $planned }
    .otherwise = 运行中的引擎持有另一模块。
c11-mode = { $instance }：引擎报告模式 { $measured } = { $limit }
    .otherwise = 运行中的引擎持有该模块，但未启用。
c11-nothing-read = { $instance }：测量阶段有 { $measured } 条 R8-PATCH read 行，应为 { $expected_bytes }
    .otherwise = 补丁已加载却没有读取：读取走了另一条路径。
c11-read-bytes = { $instance }：补丁读取 { $measured } = 应为 { $limit }
    .otherwise = 补丁读取的并非恰好是被测会话的块。
c11-misses = { $instance }：{ $measured } 次未命中
    .otherwise = 补丁把一些块作未命中答复：它们被重算。
c11-no-segment-size = 分段大小未知
    .otherwise = loaded 行缺少它。
c11-segments = { $instance }：{ $measured } 段 >= { $read_bytes } / { $segment_bytes } = { $limit }
    .otherwise = 块没有分段：读取并非并行。
c11-patch-inactive = { $instance }：补丁已加载，模式 { $measured } = { $limit }
    .otherwise = 该臂名为未打补丁，而补丁在起作用。
c11-no-patch-line = { $instance }：{ $lines } 条相关日志行中没有 R8-PATCH 行
    .otherwise = 没有引擎日志，无人知道补丁是否出过声。
c11-target-base = 目标文件 { $target } = 基础文件 { $base }
    .otherwise = 该文件不是其版本的基础文件，且未声明 serial 模式。

## E1

rule-e1 = 引擎没有退回重算
    .why = 没有 KV 层的引擎照样作答、变慢，并报告自己健康。
    .reads = 每个实例 engine_log 中 kind 为 fatal 的行
    .threshold = 一行也没有；没有任何行的实例为未知
e1-sound = { $instance }：{ $lines } 条相关日志行中没有致命行
e1-fatal = { $instance }：{ $lines } 条相关日志行中 { $measured } 条致命，首见于第 { $first } 行：「{ $text }」
    .otherwise = 引擎在没有 KV 层的情况下运行，而健康检查仍为正常。
e1-not-judged = { $instance }：引擎有 { $measured } 条警告或错误未作判断，首见于第 { $first } 行：「{ $text }」
    .otherwise = 这些日志行的形式不为 R8 所知，请在 raw/ 中查阅。

## E2

rule-e2 = 引擎的日志与计数逐请求一致
    .why = 日志行可能丢失，计数可能属于另一个引擎：两个证人，一个说法。
    .reads = 被测请求的 server_request_id；查找行；每个实例 /metrics 的计数 { $external } 与 { $prefix }
    .threshold = 每个响应都对应上；计数恰为各行之和，且为 0；作为加载者的引擎：其日志写明目录，大小相差不超过 { $error_gib } GiB，自述的加载时间不超过所见时间加 { $error_s } s（其舍入）
e2-joined = { $requests } 个响应中 { $seen } 个经 { $ids } 个 id 与其查找行对应
    .otherwise = 有响应缺少 id，或其引擎日志没有该 id。
e2-other-words = { $requests } 个响应（{ $ids } 个 id）均无查找行
    .otherwise = LMCache 未写该行，或以本版 R8 不识别的措辞写出（另一版本的 LMCache）。
e2-counters-not-read = { $instance }：窗口前后未读取 /metrics 的缓存计数
    .otherwise = 未取得 metrics 页，或引擎不公布这些计数。
e2-external-hits = { $instance }：外部命中计数增加 { $measured } = 其查找行合计 { $logged } 个词元，{ $silent } 个请求没有查找行
    .otherwise = 同一引擎的日志与计数对加载内容说法不一，或缺少查找行。
e2-prefix-hits = { $instance }：前缀缓存命中计数增加 { $measured } = { $limit }
    .otherwise = 引擎用自己的前缀缓存作答。
e2-no-engine-loads = 此处没有引擎加载
    .otherwise = 工作进程不是引擎。
e2-no-load = 没有引擎完成加载
    .otherwise = 该运行没有 measure 阶段的 `work` 事件。
e2-load-not-said = { $worker }：引擎日志没有写全它的加载
    .otherwise = 其日志缺行，或者它没有加载；见 raw/。
e2-directory = { $worker }：引擎加载了 { $measured } = 交给它的 { $limit }
    .otherwise = 引擎加载的模型不是被计数字节的那个模型。
e2-load-time = { $worker }：引擎自述 { $measured } s <= 所见 { $seen_s } s 加 { $error_s } s
    .otherwise = 所见的时间不是其加载的时间。
e2-load-size = { $worker }：引擎自述 { $measured } GiB，张量共 { $seen_gib } GiB
    .otherwise = 引擎加载了大小不同的内容。

## E3

rule-e3 = 引擎没有失败或超时的 KV 加载
    .why = 没有缓冲区的加载会等一分钟，然后被放弃，引擎照常继续：只有其日志说明某个请求为何慢，或终究是重算的。
    .reads = 每个实例在引擎整个存续期间 engine_log 中 kind 为 trouble 与 alloc_failed 的行
    .threshold = 没有 trouble 行；两次加载或存储之间，每个会话块、每个 rank 至多 { $refusals_a_chunk } 次缓冲区被拒（通常一次：填满的层先拒绝、淘汰，再给予；一次也没有的日志为未知）
e3-no-failed-load = { $instance }：{ $lines } 条相关日志行中没有失败或超时的加载
e3-failed-load = { $instance }：{ $measured } 行日志记有失败或超时的加载，首见于第 { $first } 行：「{ $text }」
    .otherwise = 有请求白等了一场，或把本应加载的内容重算了一遍；内存层是否小于同时加载的数据量？
e3-refusals = { $instance }：自第 { $line } 行起最多连续 { $measured } 次缓冲区被拒 <= { $limit }（每个会话 { $chunks } 个块 x { $refusals_a_chunk }）
    .otherwise = 引擎曾等待其内存层的缓冲区。
e3-no-refusal = { $instance }：整份日志中没有被拒的缓冲区
    .otherwise = 被冲刷填满的层会先拒绝再淘汰：要么它从未填满，要么日志（或读取日志的 R8）漏掉了这类行。

## Q1

rule-q1 = 每个计划的请求都得到完整回答
    .why = 丢掉失败会美化每个百分位数。
    .reads = measure 阶段的请求：结果、会话、usage 词元数；没有 KV 引擎时，各工作进程的行
    .threshold = 没有失败，每个计划的会话一次，词元数完全相符；没有 KV 引擎时：每个计划的工作进程一次，没有失败，文件的全部字节减去至多 { $header_share } 的文件头
q1-failed = { $requests } 个请求中 { $measured } 个失败（「{ $failures }」）
    .otherwise = 有请求失败的运行是无效（INVALID），不是慢；见 raw/ 与该请求的错误。
q1-requests = { $measured } 个请求 = 计划 { $limit } 个
    .otherwise = 每个会话只测一次：第二次读取不再是冷的。
q1-sessions = 测量 { $measured } 个会话 = 计划 { $limit } 个
    .otherwise = 每个会话只测一次：第二次读取不再是冷的。
q1-output-tokens = { $limit } 个回答中 { $measured } 个为 { $tokens } 个词元
    .otherwise = 服务器的 usage 与所请求的不符。
q1-prompt-tokens = { $limit } 个提示中 { $measured } 个为 { $tokens } 个词元
    .otherwise = 服务器的 usage 与所请求的不符。
q1-no-worker = 没有工作进程的行
    .otherwise = 该运行没有 measure 阶段的 `work` 事件。
q1-workers-failed = { $workers } 个工作进程中 { $measured } 个失败（「{ $failures }」）
    .otherwise = 有工作进程失败的运行是无效（INVALID），而不是慢；见 raw/worker-*.log。
q1-worker-rows = { $measured } 行工作进程记录 = 计划 { $limit } 行
    .otherwise = 每个工作进程只做一次：第二次读取就不是冷读。
q1-workers = 工作进程 { $measured } = 计划的 { $limit }
    .otherwise = 运行的工作进程与计划的不同。
q1-moved = 工作进程搬运 { $measured } = 文件 { $total_bytes } 减去至多 { $header_share } 的文件头
    .otherwise = 某个工作进程没有搬运其文件中的全部内容。

## Q2

rule-q2 = 运行完整，阶段次序正确
    .why = 恢复或次序颠倒的运行显示的是发生了什么，不是计划了什么。
    .reads = run.complete；事件 { $milestones }
    .threshold = 每个里程碑，依次，恰好测量一次
q2-complete = 由其自身的实验流程封存
q2-recovered = 由日志恢复
    .otherwise = 恢复的运行只显示已记入日志的内容，不测量任何东西。
q2-no-event = 缺少事件 { $event }
    .otherwise = 运行没有完成。
q2-measured-once = 测量 { $measured } 次 = { $limit }
    .otherwise = 再次测量的单元不是冷读：第一次读取填满了缓存。
q2-order = { $milestones } 个里程碑次序正确：{ $measured }
    .otherwise = 应有的次序为 { $order }。

## Q3

rule-q3 = 结束时主机与开始时相同
    .why = 在运行中改变的调速器、链路或驱动，会改变所测之物。
    .reads = 开始与结束时的事件 `environment`：其稳定部分的摘要与变化
    .threshold = 没有部分改变；负载、已用内存与空闲链路速率不在其内
q3-no-sections = 采集结果没有各部分
    .otherwise = 采集没有完成。
q3-unchanged = { $sections } 个部分中 { $measured } 个改变，此处不可得：{ $absent }
q3-changed = { $sections } 个部分中 { $measured } 个改变，此处不可得：{ $absent }（「{ $changes }」）
    .otherwise = 结束时主机与开始时不同：请比较 raw/environment-begin.json 与 raw/environment-end.json。

## G1

rule-g1 = 没有先前臂留下的 GPU 内存
    .why = 先前引擎留在 HBM 中的 KV，不从任何地方读取。
    .reads = 开始时的事件 `environment`：每块 GPU 的已用内存；事件 engine_started
    .threshold = 至多为一块卡的 { $most_share } 与 { $floor_bytes } 中较大者（空闲卡显示 0.3 GB）
g1-no-gpu = 引擎所在主机没有 GPU
    .otherwise = 没有 GPU 内存，就不会有残留。
g1-captured-before = 采集于引擎启动之前：{ $measured }
    .otherwise = 启动之后，引擎自身的内存会被当作残留。
g1-memory = { $device }：已用 { $measured } <= { $limit }
    .otherwise = 先前的进程仍占用 { $device } 的内存：其 KV 可能被再次使用。
g1-memory-unknown = { $device }：已用内存未知
    .otherwise = 其驱动或工具没有说明。

## S1

rule-s1 = 每个引擎都读取了自己的份额
    .why = 同一设备上的引擎可能互相供给，或其一可能饥饿：总和正确而速率不正确。
    .reads = 视图 instance_reads：请求数、查找行的命中字节、每个实例进程树的 read_bytes；指标 device_read_bytes
    .threshold = 请求数与命中恰为份额；进程字节从其 { $floor_share } 至高出 { $tolerance_share } 与 { $excess_bytes } 中较大者；总和在设备的 { $tolerance_share } 之内
s1-one-engine = 没有并行的引擎
    .otherwise = 由规则 C4 平衡这一个。
s1-requests = { $instance }：{ $measured } 个请求 = 计划 { $limit } 个
    .otherwise = 各引擎负载不同：其速率不能说明任何问题。
s1-hits-unknown = { $instance }：命中字节未知
    .otherwise = 见其日志。
s1-process-unknown = { $instance }：进程 read_bytes 未知
    .otherwise = 见其进程采样。
s1-hits = { $instance }：命中 { $measured } = 计划 { $limit }
    .otherwise = 该引擎找到的块不是它所存的。
s1-process = { $instance }：进程读取 { $measured }，允许 { $low } 至 { $high }
    .otherwise = 该引擎读取少于其命中，或读取了别的引擎命中的内容：它由缓存供给，或替别的引擎工作。
s1-told-apart = { $engines } 个引擎位于 { $trees } 棵进程树
    .otherwise = engine.root_pid 为多个引擎给出同一进程：其字节无法区分。
s1-sum = 各实例命中 { $each } 字节 = { $hit_bytes }，设备读取 { $measured }，允许 { $low } 至 { $high }
    .otherwise = 各引擎找到之和不等于其设备所读。
s1-sum-unknown = 各实例之和未知
    .otherwise = 某实例或设备没有读数。

## W1

w-no-checkpoint = 没有写检查点
    .otherwise = 该运行不写检查点。
rule-w1 = 保存结束时每个字节都已在设备上
    .why = 计时而不含刷盘的保存测的是内存，断电即失。
    .reads = 视图 work 的 measure 阶段（已刷盘的文件与目录、提交、时刻）；磁盘 `write_sectors` 与 `flushes`，自第一个进程开始至最后一个结束，以及至 drop_begin；事件 `write_cache`
    .threshold = 所有文件与每个进程的一个目录已刷盘，一次提交；设备字节不少于文件，至多高出 { $tolerance_share } 与 { $metadata_bytes }（文件系统的日志）；有设备缓存写入时须有一次刷盘；保存与清缓存之间至多 { $late_bytes }
w1-no-rank = 没有进程写入
    .otherwise = 该运行没有 measure 阶段的 `work` 事件。
w1-not-saved = { $ranks } 个进程中 { $measured } 个没有完成保存（「{ $failures }」）
    .otherwise = 缺少某个进程那一部分的检查点不成其为检查点；见 raw/worker-*.log。
w1-files-flushed = { $files } 个文件中 { $measured } 个未刷盘
    .otherwise = 计时结束时尚未要求设备保存这些字节：它测的是内存。
w1-directories-flushed = { $ranks } 个进程中 { $measured } 个未刷盘目录
    .otherwise = 计时结束时尚未要求设备保存这些字节：它测的是内存。
w1-committed = { $measured } 个进程提交 = { $limit }（{ $workers }）
    .otherwise = 计时须在其余进程都刷盘之后，以一个进程的提交结束。
w1-writes-unknown = { $device }：保存前后没有写计数
    .otherwise = 磁盘探针没有读数。
w1-bytes-in-window = { $device } 在 { $window_ns } 的窗口中写入 { $measured }，文件共 { $low }，至多 { $high }
    .otherwise = { $side ->
        [below] 计时结束时仍有字节在内存中。
       *[other] 设备写入多于检查点：另有程序在写。
    }
w1-write-cache-unknown = 不知道设备的写缓存方式
    .otherwise = 其队列没有说明。
w1-nothing-held = 下层没有设备缓存写入
w1-flushed = 缓存写入的设备的刷盘次数：{ $devices }
    .otherwise = 缓存写入的设备从未收到刷盘要求，或无人计数：断电即丢失这些字节。
w1-no-drop = 保存之后没有清缓存
    .otherwise = 缺少 drop_begin 事件。
w1-late-writes = { $device } 在保存与清缓存之间写入 { $measured }，允许 { $low } 至 { $high }
    .otherwise = 迟到的写入本应在计时窗口之内。

## W2

rule-w2 = 检查点可以读回
    .why = 读不回来的不是检查点，无论写得多快。
    .reads = 视图 work 的 prepare 与 readback 阶段（每个进程的 SHA-256）；读回期间的磁盘 `read_sectors`；规则 C3 检查其前的清缓存
    .threshold = 每个进程的散列；设备字节不少于文件的 { $floor_share }
w2-no-hash = 没有所保存内容的散列
    .otherwise = 该运行没有 prepare 阶段的行。
w2-nothing-read-back = 读回 { $measured } 个部分
    .otherwise = 没有可读回的检查点：所写的不成其为检查点。
w2-parts-same = { $limit } 个部分中 { $measured } 个的 SHA-256 与保存时相同（「{ $failures }」）
    .otherwise = 读到的不是写下的内容，或无法读取。
w2-bytes-unknown = 不知道读回的字节数
    .otherwise = 磁盘探针或某个进程没有数据。
w2-from-the-device = { $device } 读取 { $read_bytes } / 文件共 { $moved_bytes } = { $measured } >= { $limit }
    .otherwise = 由页缓存应答：未能证明设备保存了它。

## W3

rule-w3 = 没有触动其他检查点
    .why = 失败的保存必须留下最近一份完好的检查点，并且不留下任何看似检查点的东西。
    .reads = 事件 `checkpoints`（目录中的名字）；视图 work 的 earlier 与 readback_earlier 阶段（每个进程的 SHA-256）
    .threshold = 恰为先前的检查点，以及在每个进程都完成保存时的被测检查点；先前检查点的每个散列
w3-names-unknown = 不知道目录中的名字
    .otherwise = 保存之后没有人查看。
w3-names = 目录中有 { $measured } = { $limit }
    .otherwise = 某个检查点不完整却已有正式名字，或有检查点不见了。
w3-half-way = 目录中有 { $measured } = { $limit }
    .otherwise = 半途留下：{ $half }。
w3-earlier-not-read = 没有读取先前的检查点
    .otherwise = 没有它的行。
w3-parts-same = 先前检查点的 { $limit } 个部分中 { $measured } 个的 SHA-256 相同（「{ $failures }」）
    .otherwise = 读到的不是写下的内容，或无法读取。

## N1 与 N2

n-own-sessions = 对照的 { $requests } 个请求，其中 { $shared } 个属于某个测量单元的会话
    .otherwise = 对照若使用测量单元自己的会话，只能显示该单元留下的东西。
rule-n1 = 热读被 C3 和 C4 拒绝
    .why = 不会说“否”的证书什么也没说。
    .reads = 对照 `warm_read`，每个区组一次，使用最先存入、最后读取的专用会话：取回的词元、它自己的清缓存、其文件读入之后的驻留、期间的磁盘 `read_sectors` 与各进程的 `rchar`
    .threshold = C3 自己的数字不成立（有文件驻留超过 { $most_share }），C4 自己的也不成立（设备字节低于命中的 { $floor_share }），且清缓存已完成、文件由引擎读取。若其文件终究不在页缓存中，或该臂以 O_DIRECT 读取，则为未知。区组中有一个运行显示即可代表区组。没有 KV 引擎时：同样的加载再做一次
n1-no-warm-read = 此运行没有热读
    .otherwise = 该区组的对照在其最后一个读取 KV 的单元的运行中。
n1-past-the-page-cache = 该臂以 O_DIRECT 读取，绕过页缓存
    .otherwise = 其热读确实到达设备；由同区组的另一臂作对照。
n1-nothing-hit = 热读没有命中
    .otherwise = 不加载 KV 的对照不能说明任何问题。
n1-drop = 对照之前的清缓存返回 { $rc }
    .otherwise = 没有自己的清缓存，对照会因此被拒，而不是因字节数被拒。
n1-rchar-unknown = 热读前后的 rchar 未知
    .otherwise = 进程探针没有读数。
n1-through-the-page-cache = 引擎进程从文件读取 { $file_bytes } >= { $limit }（命中 { $hit_bytes }）
    .otherwise = 命中来自内存层：对照之前没有把它冲刷掉。
n1-residency-unknown = 热读之前的驻留未知
    .otherwise = 没有测量这些文件的驻留。
n1-files-not-cached = 已知在缓存中的文件未被看到
    .otherwise = 由设备给出，或没有设备计数器能说明更多：什么也没有证明。
n1-c3 = C3 看到 { $measured } 个文件驻留超过 { $most_share }
    .otherwise = 从页缓存读出的文件未在其中被看到：C3 看不见。
n1-adds-up = 页缓存 { $cached_bytes } + 设备 { $device_bytes } = { $measured } >= { $limit }（共 { $wanted_bytes }）
    .otherwise = 页缓存与设备合计给出的字节少于所读。
n1-device-unknown = 热读前后没有读计数
    .otherwise = 热读前后磁盘探针没有记录。
n1-c4 = C4 看到 { $device } 读取 { $read_bytes } / 引擎命中 { $hit_bytes } = { $measured } < { $limit }
    .otherwise = 已知为热的读取与冷读一样平衡：C4 在此不能证明任何事。
n1-not-warm = { $device } 读取 { $read_bytes }，命中 { $hit_bytes }：这次读取不是热读
    .otherwise = 页缓存没有留住读入的内容。
n1-window-writes = 该窗口是写入
    .otherwise = C4 没有可能是热读的对象。
n1-no-warm-load = 此运行没有热加载
    .otherwise = 同区组的另一运行可能有。
n1-nothing-loaded = 热加载没有搬运任何字节
    .otherwise = 什么都不加载的对照说明不了什么。
n1-c4-load = C4 看到 { $device } 读取 { $read_bytes } / 热加载 { $moved_bytes } = { $measured } < { $limit }
    .otherwise = 已知的热加载与冷加载一样平衡：C4 在此证明不了什么。
rule-n2 = 随机提示没有命中
    .why = 若无人写入的提示在缓存中被找到，命中就证明不了任何事。
    .reads = 对照 `random_prompt`，每个区组一次，使用无人写入的会话：其查找行的命中词元
    .threshold = 0 个词元。区组中有一个运行显示即可代表区组
n2-no-random-prompt = 此运行没有随机提示
    .otherwise = 该区组的对照在其最后一个读取 KV 的单元的运行中。
n2-no-lookup = { $requests } 个随机提示中 { $seen } 个有查找行
    .otherwise = 引擎日志没有说明它们命中什么。
n2-hit-tokens = { $requests } 个随机提示，最多命中词元 { $measured } = { $limit }
    .otherwise = 无人写入的提示竟在缓存中：命中在此不能证明任何事。

## `r8 explain` 在规则自身文字之外所说

explain-of-run = 它必须在裁决所依据的每个运行中成立。
explain-of-block = 区组中有一个运行成立即可代表区组；有一个被推翻即否定区组。
explain-answers = 成立；被推翻（凭数字）；未知（缺少证据），对每个主张都是无效（INVALID），绝不算通过；不适用，即运行自身的计划没有给该规则对象，并以文字说明原因。
explain-why = 原因
explain-reads = 读取
explain-threshold = 阈值
explain-scope = 范围
explain-answers-are = 回答
