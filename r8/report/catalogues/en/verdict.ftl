# Why a verdict, a gate or a repeated run came to what it did. Facts arrive as text with their unit;
# of a check also $measured and $limit ($low and $high of a range).

## Not measured

verdict-no-run = no run of { $scenario } at level { $level }
verdict-no-arm = no run of arm { $arm }
verdict-gap = block { $block } of { $campaign } has no { $arms }
verdict-no-reference = no other runs of this scenario and level are its reference

## Not comparable

verdict-basis = run { $run } is { $measured }, published numbers are { $limit }: a device shaped after the published numbers proves nothing about them
verdict-fallback-level = fallback_level: run { $run } is at { $measured }, published numbers are of a { $limit }
verdict-key = { $key }: published { $limit }, run { $run } has { $measured }
verdict-unlike = { $key }: { $limit } in { $run }, { $measured } in { $other }
verdict-of-reference = the reference runs differ

## Invalid

verdict-finding = rule { $rule } in { $run }: { $numbers }
verdict-more-findings = and { $n } more findings
verdict-blocks-picked = blocks may not be picked
verdict-no-number = no number to judge: run { $run } has no { $metric }
verdict-not-positive = no number to judge: { $metric } of run { $run } is { $value }
verdict-other-unit = no number to judge: { $metric } is measured in '{ $unit }', the claim is in '{ $claimed }'
verdict-warm-reads = warm reads of run { $run } took { $measured } from the device, at most { $limit } allowed: a prediction from them would count the device twice

## Numbers

verdict-blocks = { $measured } of { $limit } blocks the plan needs
verdict-value = { $estimate_value } [{ $low_value }, { $high_value }], claimed { $claimed }
verdict-value-alone = { $estimate_value }, claimed { $claimed }
verdict-deviation = deviation { $from_deviation }
verdict-point-check = point check: the published number carries no variance
verdict-prediction = measured { $measured_value } x [{ $measured_low_value }, { $measured_high_value }], predicted { $predicted_value } x, measured / predicted { $estimate_value } [{ $low_value }, { $high_value }]
verdict-prediction-alone = measured { $measured_value } x, predicted { $predicted_value } x, measured / predicted { $estimate_value }
verdict-equivalence = { $ours_value } against reference { $reference_value } of { $reference_blocks } blocks, quotient { $estimate_value } [{ $low_value }, { $high_value }]
verdict-equivalence-alone = { $ours_value } against reference { $reference_value } of { $reference_blocks } blocks, quotient { $estimate_value }
verdict-low-end = low end { $measured }, { $limit } or more wanted
verdict-high-end = high end { $measured }, { $limit } or less wanted
verdict-left-out = not used: block { $block } of { $campaign }, which has no { $arms }

## Gates

gate-of-array = a gate is about the array itself
gate-no-topology = the probes recorded no members of the KV device
gate-drives = { $measured } drives below the KV device in the probes' topology of every run, { $limit } wanted
gate-published = published { $claimed }
gate-no-run = no run of { $scenario }
gate-no-line = array: the runs do not name the published array, and no --line-gbit says how fast its line is
gate-no-stress = run { $run } holds no fio stress of its device
gate-line = fio reads of { $runs } runs against a line of { $line_bytes_per_s }
gate-line-slowest = the slowest reaches { $measured } of it, { $limit } wanted
gate-line-fastest = the fastest reaches { $measured }
gate-nodes = { $printed } nodes on one array: R8 has no scenario of several nodes yet
gate-g4 = { $printed } of load and injected faults: not yet measurable
gate-last = gate { $gate }: exit code { $code }

## Repeated runs

rerun-same-workload = same arm, level, seed, prompts and patch digests
rerun-differs = { $what }: { $limit } sealed, { $measured } again
rerun-certified = the repeated run earns its certificate
rerun-repeats = { $same } of { $of } outputs identical; { $floor_share } repeat by themselves
rerun-sessions = { $measured } of { $limit } sessions in both runs
rerun-chance = chance of so few { $measured }, { $limit } or more allowed
rerun-requests = { $limit } sealed requests, { $measured } again
rerun-count = { $what } of session { $session }: { $limit } sealed, { $measured } again, by the server's usage
rerun-no-time = no { $metric } to compare
rerun-time = { $metric } { $again_value } again, { $sealed_value } sealed: { $measured }, { $low } to { $high } allowed
