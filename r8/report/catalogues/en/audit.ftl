# The audit of the published figures, `r8 explain A1` to `A11`, and the checklist.

audit-title = Audit of the published figures
audit-head = Arithmetic on printed numbers only. A printed number stands for every value that rounds to it. OFF: no value that prints like the inputs gives the printed result. A lead is an expression of published figures that gives the number; it is not a cause.
audit-count = { $total } checks: { $follows } follow, { $off } off, { $undetermined } undetermined.
audit-where = printed in { $pages }
audit-answers = FOLLOWS (the printed numbers allow it), OFF (no value that prints like them does), UNDETERMINED (an input is not published, or rounding or the denominator decides).
input-unpublished = { $input } is not published
lead-same-report = lead, same report: { $expression } gives it ({ $arithmetic }; { $reports })
lead-other-report = lead, another report: { $expression } gives it ({ $arithmetic }; { $reports })

rule-a1 = A derived figure follows from the printed ones
    .why = A ratio on a page is believed because its two readings stand beside it; anybody can divide them.
    .reads = the formula of each derived figure, the printed inputs and their last printed digits.
    .threshold = none: the enclosure of the formula and the enclosure of the printed result share a value, or they do not.
a1-follows = { $figure } prints { $printed }; { $values } = { $result }
a1-above = { $figure } prints { $printed } ({ $stands_for }); { $values } = { $result }, so it is { $gap } too high
a1-below = { $figure } prints { $printed } ({ $stands_for }); { $values } = { $result }, so it is { $gap } too low
a1-unpublished = { $figure } prints { $printed }; its formula { $formula } needs { $input }, which is not published
a1-no-readings = { $figure } prints { $printed }; the readings it compares are not published

rule-a2 = What a page labels measured rests on readings
    .why = A modelled number labelled Measured is believed more than it says.
    .reads = the page label and the basis of each figure, and the basis of every figure it rests on.
    .threshold = none; specified counts may be inputs of a measured figure, models and estimates may not.
a2-follows = { $figure } ({ $printed }) is labelled { $label } and is { $basis }
a2-off = { $figure } ({ $printed }) is labelled { $label }; its basis is { $basis }
a2-off-input = { $figure } ({ $printed }) is labelled { $label }; it rests on { $input }, which is { $basis }
a2-unpublished = { $figure } is called { $label }; no reading is published

rule-a3 = One quantity has one value wherever it is printed
    .why = Two values of one quantity cannot both be quoted.
    .reads = figures of one report, platform, scenario, arm, level, metric and statistic; rows that print another row again; pairs named in relations.toml.
    .threshold = none: both may be rounded, so they must share a value.
a3-follows = { $one } ({ $first }) and { $other } ({ $second }) agree: { $one_is } / { $other_is }
a3-off = { $one } prints { $first } and { $other } prints { $second }: { $one_is } / { $other_is }, { $gap } apart
a3-units = { $one } prints { $first } and { $other } prints { $second }: no factor converts one unit to the other
a3-unpublished = { $input } is not published, so nothing can be compared

rule-a4 = A range in the text is the range of its table
    .why = A range that leaves out an arm, a level or a statistic reads like a promise for all of them.
    .reads = both ends of each range and every member of what it summarises: each arm, level and statistic.
    .threshold = none: every member shares a value with the range, and each end with some member.
a4-follows = { $printed } holds all { $count } members, { $least } up to { $greatest }
a4-off = { $printed } against { $count } members, { $least } up to { $greatest }; outside: { $outside }; ends no member reaches: { $unmet }

rule-a5 = A printed GB is the GB its geometry says
    .why = 7.4 % lie between 10^9 and 1024^3 bytes, more than the deviation the reports promise.
    .reads = sizes against layers x heads x values x tokens, and the units of the tool a bandwidth was read with.
    .threshold = { $tolerance_share } either way: file headers, directory blocks and a part chunk.
a5-base = { $count } figures such as { $example } hold GB of { $base } bytes, { $share } more than 10^9: { $decimal } in decimal GB
a5-base-follows = { $count } figures such as { $example } hold GB of { $base } bytes ({ $share } of difference): { $decimal }
a5-decimal = { $printed } agrees with { $values } = { $bytes } B = { $decimal_gb } x 10^9 B ({ $binary_gb } x 1024^3 B)
a5-binary = { $printed }, but { $values } = { $bytes } B is { $decimal_gb } x 10^9 B and { $binary_gb } x 1024^3 B: the GB is 1024-based
a5-neither = { $printed }, but { $values } = { $bytes } B is { $decimal_gb } x 10^9 B or { $binary_gb } x 1024^3 B: it fits neither

rule-a6 = Nothing is faster than what carries it
    .why = A read faster than the port or the slot was served by a cache, or its unit is wrong.
    .reads = bandwidths in the GB they need (A5), port rates and PCIe rates with their line coding.
    .threshold = none: OFF when even the lowest reading exceeds the highest limit.
a6-follows = the highest of { $count }, { $figure } ({ $printed } = { $value }), stays below { $limit } ({ $times } of it)
a6-off = { $figure } ({ $printed } = { $value }) exceeds { $limit }, { $times } times
a6-unsettled = { $figure } prints { $printed }; the printed rates allow { $limit } at once, and { $unless }, which would settle it, is not published

rule-a7 = A percentile has the samples it needs
    .why = Below 1 / (1 - q) samples a percentile is the maximum under another name, and moves with one request.
    .reads = the statistic and the level of each figure: a level cN is one burst of N requests, divided over the instances.
    .threshold = n >= 1 / (1 - q): p90 needs { $p90 }, p99 needs { $p99 }.
a7-follows = { $metric } { $rank } of n = { $n } (needs { $needed }): { $count } figures, such as { $example }
a7-off = { $metric } { $rank } of n = { $n } is the maximum, it needs { $needed }: { $count } figures, such as { $example }

rule-a8 = Time, bandwidth and size belong together
    .why = What was read in a time at a rate is a size, and the page prints all three.
    .reads = times, bandwidths, sizes, token counts and throughputs that the pages print for one operation, in the units printed.
    .threshold = none: the two sides share a value; a number of whole objects holds a whole number.
a8-whole = { $formula } = { $number }, which holds a whole number
a8-not-whole = { $formula } = { $number }, which is no whole number
a8-equal = { $left } = { $left_is } agrees with { $right } = { $right_is }
a8-enough = { $left } = { $left_is } covers { $right } = { $right_is }
a8-off = { $left } = { $left_is }, but { $right } = { $right_is }: { $gap } apart ({ $share })
a8-short = { $left } = { $left_is } does not cover { $right } = { $right_is }: { $gap } short ({ $share })

rule-a9 = Repeated readings lie within the stated deviation
    .why = A deviation without a denominator holds or fails by choice; both choices are shown.
    .reads = readings of the same arm, level, metric and statistic in two runs, and the stated bound.
    .threshold = the stated bound as written (5 % is not 5.4 %), over all values the rounding allows.
a9-within = { $later } against { $earlier }: { $of_earlier } of the earlier, { $of_later } of the later; stated { $stated }
a9-beyond = { $later } against { $earlier }: { $of_earlier } of the earlier and { $of_later } of the later, both beyond the stated { $stated }
a9-depends = { $later } against { $earlier }: { $of_earlier } of the earlier, { $of_later } of the later; whether { $stated } holds is decided by the denominator or by rounding

rule-a10 = The utilisation model agrees with the load times it implies
    .why = Two modelled shares invert to two load times, and their quotient is printed elsewhere as a gain.
    .reads = the printed utilisation before and after, the switches an hour, the printed per-model gain; U = 1 - n * t_load / 3600.
    .threshold = none; both interpretations of a gain are tried: time saved, and speed gained.
a10-saved = at { $switches } switches an hour a load takes { $before } before and { $after } after: { $saved } of the time saved, as the printed { $claimed } faster; read as speed it would be { $faster }
a10-faster = at { $switches } switches an hour a load takes { $before } before and { $after } after: speed up { $faster }, as the printed { $claimed }; read as time saved it would be { $saved }
a10-either = at { $switches } switches an hour a load takes { $before } before and { $after } after: { $saved } of the time saved, speed up { $faster }; the printed { $claimed } fits both
a10-off = at { $switches } switches an hour a load takes { $before } before and { $after } after: { $saved } of the time saved, speed up { $faster }; the printed { $claimed } is neither

rule-a11 = Results of different platforms are not merged
    .why = A quotient of two platforms says nothing about either.
    .reads = the platform of each derived figure and of its inputs.
    .threshold = none.
a11-follows = { $figure } stays on { $own }
a11-off = { $figure } is of { $own } and reads { $others }

status-stated = stated
status-partly = partly
status-not-published = not published
checklist-title = Five checks of report { $report }
checklist-baseline = Baseline stated
checklist-platform = Platform and topology stated
checklist-deviation = Run-to-run deviation stated and supported
checklist-third-party = Third-party report
checklist-material = Reproduction material
platform-stated = { $platform }
topology-stated = { $quote }
third-party-stated = { $quote }
reproduction-stated = { $quote }
baseline-named = { $scenario }: compared with { $quote }
baseline-unnamed = { $scenario }: what it is compared with is not published
baseline-no-reading = { $figure } ({ $printed }): the readings it compares are not published
baseline-no-comparison = the report prints no comparison
deviation-stated = stated: { $printed } ({ $where })
deviation-elsewhere = { $reports } states { $printed } for its own cells; this report states none
deviation-pairs = { $total } printed pairs: { $follows } keep it under either denominator, { $off } under neither, { $undetermined } depend on denominator or rounding
deviation-no-pairs = no pair of readings is printed beside it
tester-unnamed = the testing organisation is not named
raw-published = the raw rows are published
raw-unpublished = the raw rows behind the figures are not published
tester-named = tester: { $organisation }
