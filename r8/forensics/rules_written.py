"""The rules about what was written: see `r8.forensics.rules` for their place in the certificate."""

from __future__ import annotations

from r8.forensics import balance, coldness, written
from r8.forensics.rule import Rule
from r8.units import mib

RULES: tuple[Rule, ...] = (
    Rule(
        rule_id="W1",
        title="every byte was on the device when the save ended",
        reason="A save timed without its flush measures memory, and is lost with the power.",
        inputs="view work, phase measure (synced files and directories, commit, instants); disk "
        "`write_sectors` and `flushes` from the first rank's begin to the last one's end and to "
        "drop_begin; event `write_cache`",
        threshold="all files and a directory a rank flushed, one commit; device bytes at least the "
        f"files' and at most {balance.BALANCE_TOLERANCE:.0%} and "
        f"{mib(written.METADATA_BYTES_MAX):.0f} MiB above (a file system's log); one flush where a "
        "device holds writes back; at most "
        f"{mib(coldness.QUIET_WRITE_BYTES_MAX):.0f} MiB between the save and the drop",
        checks=written.durable_inside_the_window,
    ),
    Rule(
        rule_id="W2",
        title="the checkpoint reads back",
        reason="What cannot be read back is no checkpoint, however fast it was written.",
        inputs="view work, phases prepare and readback (SHA-256 a rank); disk `read_sectors` over "
        "the readback; rule C3 is about the drop before it",
        threshold="every rank's hash; device bytes at least "
        f"{1 - balance.BALANCE_TOLERANCE:.2f} of the files",
        checks=written.reads_back,
    ),
    Rule(
        rule_id="W3",
        title="no other checkpoint was touched",
        reason="A save that fails must leave the last good one, and nothing that looks like one.",
        inputs="event `checkpoints` (names in the directory); view work, phases earlier and "
        "readback_earlier (SHA-256 a rank)",
        threshold="exactly the earlier and, when every rank saved, the measured checkpoint; every "
        "hash of the earlier one",
        checks=written.others_untouched,
    ),
)
