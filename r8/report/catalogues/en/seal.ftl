# `r8 verify`: what each step saw, and why a bundle is refused.

seal-not-reached = not reached: { $step } failed
seal-evidence-refused = refused: { $error }
seal-step-failed = unreadable: { $kind }: { $error }

## The archive and its bytes

seal-a-directory = a directory, not an archive: nothing to unpack
seal-unpacked = { $files } plain files, none outside, no other byte
seal-archive-grows = the archive unpacks to more than { $most_bytes }, the most for its size
seal-archive-torn = the archive is torn or not one: { $error }
seal-archive-other-bytes = the archive holds bytes that are no file of the bundle
seal-member-twice = member { $member } is there twice or out of order
seal-members-too-many = the archive has more than { $most } members
seal-member-grows = member { $member } claims { $size_bytes }, more than its archive can hold
seal-member-no-file = member '{ $member }' is not a plain file
seal-member-climbs-out = member '{ $member }' climbs out of the archive
seal-member-elsewhere = member '{ $member }' does not lie in { $top }/
seal-member-name = member '{ $member }' has no plain name: at most { $levels } levels of A-Z a-z 0-9 . _ -
seal-member-other-header = the header of member { $member } is not the one R8 writes
seal-digests = { $files } files, each with the digest of the manifest
seal-file-unlisted = { $file } is not in the manifest
seal-file-missing = { $file } is missing
seal-file-differs = { $file } differs from its manifest

## The statement and its signature

seal-statement = in-toto test result about manifest { $manifest }
seal-other-manifest = the statement is about manifest { $named }, and this one is { $manifest }: an old seal on new content
seal-no-envelope = the envelope is not a signed statement: { $error }
seal-other-payload = the envelope is not a signed statement: its payload is of type '{ $payload }'
seal-not-canonical = the envelope is not a signed statement: it is not in canonical form
seal-signed = { $kind } signature by { $key }
seal-key-given = the key you gave
seal-key-inside = the key in the bundle: give --key to know whose
seal-unsigned = nobody signed this bundle
seal-unsigned-accepted = UNSIGNED, and accepted so: nothing says who sealed it
seal-other-key = signed by key { $key }, not by { $wanted }
seal-bad-signature = the signature does not belong to the statement and key { $key }

## What is inside

seal-runs = { $runs } runs and { $references } reference runs of schema version { $versions }
seal-no-run = there is no run in the bundle
seal-other-run = folder { $folder } holds run { $run }
seal-sealed-by-same-code = bundle.json agrees; sealed by r8 { $version }, this very code
seal-sealed-by-other-code = bundle.json agrees; sealed by r8 { $version }, other code than this
seal-other-format = the bundle has format { $format }, this R8 reads { $ours }
seal-inventory-differs = bundle.json says otherwise about '{ $key }'
seal-unreadable = { $file } cannot be read: { $error }
seal-cells = { $campaign }: all { $planned } planned cells
seal-cells-left-out = { $campaign }: { $n } of { $planned } planned cells left out: { $cells }
seal-cell-unplanned = { $campaign }: { $cell } is none of the { $planned } planned cells
seal-plan-changed = the plan in run { $run } is not the one its campaign declared
seal-plans-differ = the runs of this campaign carry { $plans } different plans
seal-plan-of-no-cell = the plan names a cell '{ $cell }', which is no cell
plan-by-event = plan: the event run_begin of every run
plan-by-site = plan: the site file, because these runs do not carry the campaign's own plan
plan-by-runs = plan: the runs alone, because nothing says what was planned
seal-recomputed = { $rows } rows recomputed from the raw rows, all equal
seal-other-claims = this R8 carries other claims than the one that sealed the bundle
seal-rows-differ = { $stated } { $part } stated, { $computed } computed
seal-values-differ = { $n } of { $of } differ: { $rows }
seal-not-recomputed = the verdicts could not be recomputed
seal-results = { $result }: { $reproduced } claims reproduced
seal-other-results = the signed statement names other results
seal-secret-found = { $run }: a secret ({ $kind }) stands in { $file }, line { $line }; lines with secrets in all: { $n }
seal-not-redacted = nothing was taken out, and nothing says so
seal-taken-out = taken out: { $n } { $kind }
seal-redacted = looked at { $texts } texts in { $files } files, { $columns } columns of tables among them: none has the form of an address, a machine's name, a serial, a user or a key
seal-name-left = { $file } names somebody: { $found } has the form of a { $kind }
seal-file-left = { $file } does not travel in a redacted bundle
seal-nothing-withheld = nothing was withheld; { $files } files of raw/ are here
seal-originals-withheld = withheld: the runs as they were recorded ({ $runs } manifests are named by digest)
seal-raw-withheld = raw/: { $n } { $kind }
seal-plan-digest-withheld = the declared digest of the plan of { $runs } runs, in which names were replaced
seal-plan-withheld = all cells that the runs name are here; the file that says which were planned was withheld
