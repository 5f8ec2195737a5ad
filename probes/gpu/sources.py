"""Every GPU source there is. A new one is its module and its line here.

Of the sources of one vendor the first that sees a card counts: a card under two names would count
twice. What it lacks is filled by the next one, card by card (`probes/gpu/seen.py`).
"""

from __future__ import annotations

from .amd_smi import AMD_SMI
from .amdgpu import AMDGPU
from .mx_smi import MX_SMI
from .npu_smi import NPU_SMI
from .nvidia_smi import NVIDIA_SMI
from .nvml import NVML
from .rocm_smi import ROCM_SMI
from .source import Library, Tool
from .xpu_smi import XPU_SMI

SOURCES: tuple[Library | Tool, ...] = (
    AMDGPU,
    NVML,
    # rocm-smi is no longer developed since ROCm 7.0; its partitions lose more than amd-smi's.
    AMD_SMI,
    ROCM_SMI,
    NVIDIA_SMI,
    NPU_SMI,
    XPU_SMI,
    MX_SMI,
)
TOOLS = tuple(source for source in SOURCES if isinstance(source, Tool))
LIBRARIES = tuple(source for source in SOURCES if isinstance(source, Library))
