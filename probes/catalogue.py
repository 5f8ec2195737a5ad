"""Every probe there is. A new one is its module and its line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .block.disk import DISK
from .block.nvme import NVME
from .block.topology import TOPOLOGY
from .engine.metrics import ENGINE
from .gpu.probe import GPU
from .host.counters import HOST
from .network.nfs import NFS
from .network.nic import NIC
from .process.counters import PROCESS

if TYPE_CHECKING:
    from .probe import Probe

# Within a thread the first one due is sampled first: the most urgent come first.
PROBES: tuple[Probe, ...] = (
    DISK,
    PROCESS,
    TOPOLOGY,
    NIC,
    NFS,
    NVME,
    HOST,
    ENGINE,
    GPU,
)
