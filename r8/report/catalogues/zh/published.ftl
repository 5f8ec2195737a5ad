# `reports/published/`, and why R8 cannot measure a figure.

page-other = 门槛、设备与价格：未引用报告的数字
page-unpublished = 未公布
page-baseline = 对照基线：{ $baseline }。
page-date = 日期
page-platform = 平台
page-topology = 拓扑
page-third-party = 第三方
page-reproduction = 复现材料
page-source = 来源
page-release = 来源：mingxin-tech/mingxin-kvcache-bench，提交 505f41e，数据按 CC-BY-4.0 授权，作者 mingxin-tech；只取数字，不取语句
page-arm = 组
page-level = 档位
page-metric = 指标
page-statistic = 统计量
page-value = 数值
page-unit = 单位
page-printed = 印刷形式
page-label = 标签
page-basis = 依据
page-figure = 编号
page-measured = R8 的测量途径
page-where = 出处

unmeasured-unpublished = 页面没有印出数值
unmeasured-specification = 规格或价格：没有可由运行测得的量
unmeasured-basis = 依据为 { $basis }，不是读数；R8 只测读数
unmeasured-claims = 由 { $file } 判定，其中说明了如何解读
unmeasured-scenario = R8 尚无场景测量 { $scenario }
unmeasured-cell = 不是某一组在某一档的读数（{ $arm }）
unmeasured-metric = R8 没有定义指标 { $metric }
unmeasured-numbers = 由纯数字算出，其后没有读数
unmeasured-through = 经由 { $figures }
