"""What may stand in a redacted bundle as it is: R8's own words, and forms that name nobody.

A text keeps the words of this list, short numbers, releases, names that the kernel gives devices,
and the ids R8 makes of them; every other word gets a pseudonym. A word is added when a rule or a
query asks for it, or when a counter, event or state of the instruments is called so; a name of a
person, a machine or a firm is none.
"""

from __future__ import annotations

import re

from r8.evidence.engine_words import FORMS
from r8.model import Basis, Phase, RequestOutcome
from r8.roles import Role
from r8.schema import TABLES, Public

_COUNTERS = """
aarch64 absent access ack active activity address after age ahead amd amdgpu ana anon answered
arms array atomic attached available average backing bandwidth base before begin block blocks
board boot buffer buffers busy by bytes cache cached cachestat calibration cancelled card cards
carrier cause ceiling cell cgroup changes checked checkpoint checkpoints class clk clock cold
committed composition computed concurrency config connect connector control controller controllers
count counter cpu ctrl cut decode delay denied depth detached dev device devices direct
directories dirs dirty discard discarded discards disk diskseq diskstats dm drop dropped durable
e2e edge effective elapsed enable end engine engines environment epoch err error errors estimated
ethtool evict evicted exceeded exited expected external extra facts fail failed fast file files
firmware first flight flops flush flushes folded free from fs fstype fsync full fuse generation
gfx gib good gpu gpus gtt head hits host hugetlb hw hz ib ibv id idle implied in index inf
inference infiniband info input instance inter invalid io iostat iostats iowait irq iteration
jiffies job kernel key keys kib kind kv latency layer layers length level levels lifetime link
list lmcache load loadavg local log loop loopback loss lost made major max md measure mem members
memory merged method metric metrics mib millicelsius min mincore minor missed missing mm modes
module moment mono mount mountinfo mounts ms mtu multicast nak names netdev never nfs nic nice
niceness nics no node none normal note now ns num numa nvidia nvme nvml of off offset on operstate
out outcome output own packet packets page pages parent partial partition patch patched path pause
pci peak per perc period pgmajfault pgpgin pgpgout phase phys pid places plan pool populate
populated port power preemptions prefill prefix pressure probe probes process processes prompt psi
pswpin pswpout queries queue quiet raid rank rate rates raw rc rchar rcv rdma read readback reader
reads reason recompute record recv refault remote replace replaced reports req request requests
residency resident resp retrans retries retry rewarm rings rnr roce rss run running rx safetensors
salvaged sample scale scheduled seconds sections sectors seen self seq sequence serve server
session sessions shape shared shmem short size sleep slot slow socket softirq some source speed
sqsize started stat state statistic status steal step stopped store stored success sum suspended
swap switch synced sys syscr syscw system target tcp temp temperature test testbed threads ticks
tier time tmo to token tokens topology total trans transport tx uid unavailable unevictable
unicast unknown unpatched until us usage used user utilization value version vllm vmstat volatile
vport vram waiting wall warm wchar weighted weights wire witness work worker workers workingset
worst write writeback writes xmit
"""
_STATES = """
abort accelerator active all auto awake back btrfs caches capacity chat chronyc chunks clean
coalescing cold command completions compute connected connecting cqe crc crypt dead deferred
degraded deleting device devinfo directory disk dmidecode dormant down earlier echo ecn env errno
estimate ext4 false fc fcs features filenotfounderror filesystem get header here hit http https
ibv_devinfo idle image inaccessible inactive installed instances is itl its itself json linear
live lmcacheconnectorv1 loaded lru lspci lvm machine member model mounted mpath multipath mx name
native neighbour new nfs4 not npu numactl offloaded ok optimized optional or orphans oserror other
part patched pcie percent permissionerror pfc post prepare prio prompt raid0 raid1 raid10 random
random_prompt ranks rate rdma readonly reaps repetition request reset resetting retrieved ring
role scenario seed sessions sh smi stalled start static statistics stays stop subsys such switched
tables tcp the through timeout tiny tmpfs tpot transfer treatment tree true turn unpatched up
upstream vm vocab warm_read went wqe write xfs yes
"""
_PLACES = """
amd array bf16 bfloat16 cluster core cpu cuda data dev epyc export float float32 fp16 ghz gold
half home image intel kv linux lmcache local localhost mnt model models numpy opt plain platinum
post proc processor pt python r8 rc rehearsal rocm safetensors scratch shaped srv tmp torch
transformers uint8 users var vllm x86_64 xeon xfs
"""
# Words of the parser's own forms beside its texts: lines of a request, of the patch, of the log.
_LINES = """
apiserver async available because block but bytes checkpoint computed cost critical direct engine
enginecore error from gb gb/s gib hit inference info is keys load loaded memory min_retrieve
misses mode model module_sha256 ms need no odirect of out parallel path pid r8-patch read req_id
reqid required retrieved seconds segment_bytes segments serial size starting stored sync threads
throughput tokens took total warning weights worker
"""


def _pieces(text: str) -> set[str]:
    return set(re.split(r"[\W_]+", text.lower())) - {""}


def _words() -> frozenset[str]:
    found = _pieces(f"{_COUNTERS} {_STATES} {_PLACES} {_LINES}")
    for texts in (
        [form.words for form in FORMS],
        Phase,
        RequestOutcome,
        Basis,
        Role,
    ):
        found |= _pieces(" ".join(texts))
    for table in TABLES.values():
        for column in table.columns:
            found |= _pieces(column.name)
            if isinstance(column.travels, Public):
                found |= _pieces(" ".join(column.travels.words))
    return frozenset(one for one in found if not one.isdigit())


WORDS = _words()
# Names that the kernel and its drivers give, the same everywhere; never one made of an address.
_DEVICE = re.compile(
    r"(?:loop|dm-|md|zram|sr|nbd|ram)\d{1,3}|(?:sd|vd|xvd|hd)[a-z]{1,2}\d{0,2}"
    r"|nvme\d{1,3}(?:c\d{1,3})?(?:n\d{1,3}(?:p\d{1,2})?)?|card\d{1,3}|cpu\d{1,4}"
    r"|(?:eth|ib|bond|bnxt_re|mlx[45]_)\d{1,3}|lo"
    r"|(?:en|ib|roce)(?:[ops]\d{1,4}(?:(?:s|f|d|np)\d{1,4}){0,3})"
)
_RELEASE = re.compile(
    r"v?\d{1,4}\.\d{1,4}\.\d{1,4}(?:(?:a|b|rc|\.post|\.dev)\d{1,3})?"
    r"(?:\+(?:cpu|cu\d{2,3}|rocm\d(?:\.\d)?))?"
)
_NUMBER = re.compile(r"[+-]?(?:\d{1,4}|\d{1,6}\.\d{1,9})%?")
_SHORT = re.compile(r"[a-z]\d{0,3}|\d{1,3}[a-z]")
_JOINT = re.compile(r"[_.:+-]")
# More numbers than these in one word may be an address: node-10-20-30.
_NUMBERS_MAX = 2
# A number behind a hyphen is somebody's machine (storage-07), but for parts of what R8 makes.
_NUMBERED = frozenset({"step", "rank", "model", "worker", "of", "block", "flush", "upstream"})
# Words of these letters alone may be digits: dead::1.
_HEXADECIMAL = re.compile(r"[a-f]+")
# The last part of a counter whose reading tells one machine or part from another.
_IDENTITY = re.compile(r"(?:^|[_.])(?:serial|u?uid|guid|lid|gid|wwn|wwid|eui|boot_id|cntlid)$")


def names_nobody(word: str) -> bool:
    """Whether a word may stand in a redacted bundle as it is."""
    if any(form.fullmatch(word) for form in (_NUMBER, _SHORT, _DEVICE, _RELEASE)):
        return True
    pieces = _JOINT.split(word.lower())
    if len(pieces) == 1:
        return pieces[0] in WORDS
    words = {one for one in pieces if one in WORDS and not _HEXADECIMAL.fullmatch(one)}
    rest = [one for one in pieces if one not in words]
    return (
        bool(words)
        and len(rest) <= _NUMBERS_MAX
        and not (re.search(r"-\d", word) and words.isdisjoint(_NUMBERED))
        and all(re.fullmatch(r"\d{0,5}", one) or _SHORT.fullmatch(one) for one in rest)
    )


def is_quantity(counter: str) -> bool:
    """Whether numbers of a counter are quantities; under another name one may be a serial."""
    name = counter.partition("{")[0]
    return names_nobody(name) and not _IDENTITY.search(name)
