"""What of a run travels in a redacted bundle, beside the columns that `r8.schema` declares.

Three tables: the keys of run.json, the facts of events, and the kinds of files in raw/. What is not
declared here is left out. Files of raw/ are declared to be named, not to travel: they are texts of
other programs, and no rule, metric or verdict reads one.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_args

from r8.model import Basis, Moves
from r8.roles import KvTier, Reads, Role
from r8.schema import SHA256, Pseudonymised, Public

if TYPE_CHECKING:
    from r8.schema import Travels

_TEXT, _DEVICE = Pseudonymised("text"), Pseudonymised("device")
_HOST, _INSTANCE = Pseudonymised("host"), Pseudonymised("instance")
_DIGEST = Public(form=SHA256)
_DIGITS = Public(form=r"\d{1,15}")

# Texts of run.json by key, as `of.which`; `of.*` is every key of a table whose keys are no fields.
# Numbers and truth values of a run are fields of its record (r8/model.py) and travel.
RUN: dict[str, Travels] = {
    "kind": Public(("kv", "transfer")),
    "run_id": Pseudonymised("run"),
    "campaign_id": Pseudonymised("campaign"),
    "plan_sha256": Pseudonymised("digest", "whole"),
    "scenario": Pseudonymised("scenario"),
    "arm": Pseudonymised("arm"),
    "role": Public(tuple(Role)),
    "basis": Public(tuple(Basis)),
    "site": Pseudonymised("site"),
    "site_sha256": Pseudonymised("digest", "whole"),
    "fallback_level": _TEXT,
    "r8_version": _TEXT,
    "versions.*": _TEXT,
    "comparability.*": _TEXT,
    "host.name": _HOST,
    "host.kernel": _TEXT,
    "host.machine": _TEXT,
    "host.cpu": _TEXT,
    "host.cores": _DIGITS,
    "host.memory_bytes": _DIGITS,
    "host.boot_id": Pseudonymised("boot", "whole"),
    "kv_host": _HOST,
    "kv_device": _DEVICE,
    "kv_dir": _TEXT,
    "other_kv_devices.host": _HOST,
    "other_kv_devices.name": _DEVICE,
    "note": _TEXT,
    "treatment.patch": Public(("patched", "unpatched")),
    "treatment.connector": Public(get_args(KvTier)),
    "treatment.reads": Public(get_args(Reads)),
    "instances": _INSTANCE,
    "patch.lmcache_version": _TEXT,
    "patch.target_sha256": _DIGEST,
    "patch.base_sha256": _DIGEST,
    "patch.module_sha256": _DIGEST,
    "job": Public(("load", "switch", "checkpoint")),
    "moves": Public(get_args(Moves)),
    "tool": _TEXT,
    "workers": _INSTANCE,
}

# Facts of events; their texts are rewritten word by word.
_FACTS = """
answered arms base_sha256 begin_ns block_bytes blocks by_instance bytes changes
chunk_tokens command committed concurrency control cpu_tier_bytes device direct disk_path
elapsed_ns enable_prefix_caching end_ns engine_lifetime error expected expected_bytes
expected_files extra_config fallback_level file file_bytes files first_session gpus host
index instance job kv kv_connector levels life lmcache_version made modes module_sha256
moment mono_ns n names note numpy outcome own_read_bytes partial path period_s phase pid
places queue_depth quiet_ns rank rc read_bytes reads reaps_orphans received_bytes
remote_url rung safetensors scenario scheduled_ns sections seed serve_begin_ns
serve_end_ns serve_until_ns sessions sessions_of sha256 shape shared_from source
started_ns synced_directories synced_files tables target_sha256 time_scale tool
tools_missing torch turn_ns unavailable wall_ns way_ns worker workers write_bytes
"""
EVENT_FACTS = frozenset(_FACTS.split())

# Files of raw/ by name: what each holds, as the message says that it was withheld.
RAW: dict[str, str] = {
    "site.toml": "site file",
    "server-*.log": "engine log",
    "client-*.gz": "streams",
    "load-*.jsonl": "load levels",
    "plan-*.json": "plans",
    "probes*.log": "probe log",
    "probes-*.jsonl": "probe rows",
    "iostat*": "iostat",
    "environment-*.json": "environment",
    "worker-*.log": "worker log",
    "worker-*.jsonl": "worker answers",
    "rendezvous*": "rendezvous",
    "turns*": "turns",
    "*.sha256": "digests",
    "*": "other files",
}


def raw_kind(name: str) -> str:
    """What a file below raw/ holds, by its name there."""
    return next(kind for form, kind in RAW.items() if fnmatchcase(name, form))
