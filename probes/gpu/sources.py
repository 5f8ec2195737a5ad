"""Every GPU source there is. A new one is its module and its line here.

Where several see the same cards the first one counts: a card under two names would count twice.
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

SOURCES: tuple[Library | Tool, ...] = (
    AMDGPU,
    NVML,
    ROCM_SMI,
    AMD_SMI,
    NVIDIA_SMI,
    NPU_SMI,
    MX_SMI,
)
TOOLS = tuple(source for source in SOURCES if isinstance(source, Tool))
LIBRARIES = tuple(source for source in SOURCES if isinstance(source, Library))
