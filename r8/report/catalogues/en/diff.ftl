# `r8 diff` and `r8 gate`.

diff-claim = claim
diff-published = published
diff-measured = measured
diff-n = n
diff-interval = interval
diff-deviation = deviation
diff-verdict = verdict
diff-reason = reason
diff-unmeasured = { $count } more figures R8 cannot measure; --all says why
diff-count = { $total } claims: { $counts }

REPRODUCED = REPRODUCED
DEVIATES = DEVIATES
INCONCLUSIVE = INCONCLUSIVE
INVALID = INVALID
NOT_COMPARABLE = NOT_COMPARABLE
NOT_MEASURED = NOT_MEASURED

reason-basis = basis: published measured, run { $run } { $basis }: a device shaped after the published numbers proves nothing about them
reason-rung = rung: published cluster, run { $run } rehearsal step '{ $rung }'
reason-key = { $key }: published '{ $ours }', run { $run } { $theirs }
reason-unlike = { $key }: { $ours } in { $run }, { $theirs } in { $other }
reason-no-run = no run of { $scenario } at level { $level }
reason-no-arm = no run of arm { $arm }
reason-few = { $n } of { $needed } blocks the plan needs; { $rest }
reason-value = { $found }, claimed { $claimed }, limit { $low } to { $high }, deviation { $deviation }; point check: the published number carries no variance{ $more }
reason-least = { $found }, claimed { $claimed }, limit { $low } or more; point check: the published number carries no variance{ $more }

gate-foreign = run { $run } is { $basis } at fallback level '{ $level }': a gate is about the array itself
gate-no-topology = the probes recorded no members of the KV device
gate-drives = { $found } drives below the KV device in the probes' topology of every run, { $wanted } wanted
gate-claim = published { $claimed }; { $reason }
gate-no-run = no run of { $scenario }
gate-no-line = array: the runs do not name the published array, and no --line-gbit says how fast its line is
gate-invalid = rule { $rule } refuses run { $run }
gate-no-stress = run { $run } holds no fio stress of its device: { $reason }
gate-line = fio reads at { $lowest_share } to { $highest_share } of { $line_bytes_per_s } in { $n } runs, { $wanted_share } wanted
gate-nodes = { $printed } nodes on one array: R8 has no scenario of several nodes yet
gate-g4 = { $printed } of load and injected faults: not yet measurable
gate-last = gate { $gate }: exit code { $code }
