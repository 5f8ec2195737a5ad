# `reports/published/`, and why R8 cannot measure a figure.

page-other = Gates, devices and prices: figures that cite no report
page-unpublished = not published
page-baseline = Compared with: { $baseline }.
page-date = Date
page-platform = Platform
page-topology = Topology
page-third-party = Third party
page-reproduction = Reproduction material
page-source = Source
page-release = Source: mingxin-tech/mingxin-kvcache-bench at 505f41e, data under CC-BY-4.0, by mingxin-tech; numbers only, no sentence
page-arm = arm
page-level = level
page-metric = metric
page-statistic = statistic
page-value = value
page-unit = unit
page-printed = as printed
page-label = label
page-basis = basis
page-figure = figure
page-measured = R8 measures it by
page-where = where

unmeasured-unpublished = the pages print no value
unmeasured-specification = a specification or a price: nothing a run could measure
unmeasured-basis = { $basis }, not a reading; R8 measures readings
unmeasured-claims = judged by { $file }, which says how it is read
unmeasured-scenario = no scenario of R8 measures { $scenario } yet
unmeasured-cell = not the reading of one arm at one level ({ $arm })
unmeasured-metric = R8 defines no metric { $metric }
unmeasured-numbers = computed from plain numbers: no reading stands behind it
unmeasured-through = through { $figures }
