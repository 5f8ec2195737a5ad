# The table of `r8 diff`.

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
