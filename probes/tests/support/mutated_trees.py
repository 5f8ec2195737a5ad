"""Sysfs trees spoiled at random, and the probes that read them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from probes.block.nvme import NvmeSampler
from probes.gpu.amdgpu import AMDGPU
from probes.gpu.probe import GpuSampler
from probes.network.nic import NicSampler
from probes.tests.support.kernel_trees import amd_tree, mlx5_tree, nvme_tree
from probes.tests.support.mutations import FOREIGN
from probes.tests.support.samplers import taken

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from probes.probe import Sampler
    from probes.samples import Sample


class Trees:
    """The three trees below one directory, each with its sampler."""

    def __init__(self, root: Path) -> None:
        self.nic, self.nvme, self.gpu = root / "nic", root / "nvme", root / "gpu"
        mlx5_tree(self.nic)
        nvme_tree(self.nvme)
        amd_tree(self.gpu)
        self.samplers: dict[Path, Sampler] = {
            self.nic: NicSampler(("ens1",), self.nic),
            self.nvme: NvmeSampler(None, self.nvme),
            self.gpu: GpuSampler(self.gpu, [AMDGPU]),
        }
        self.zeros = {
            (row.device, row.counter)
            for sampler in self.samplers.values()
            for row in taken(sampler)
            if row.value == 0
        }

    def spoil_and_sample(self, dice: random.Random) -> tuple[str, list[Sample], bytes]:
        """Spoil one file, sample, mend it; the file, the samples and what was in the file."""
        tree = dice.choice(list(self.samplers))
        files = sorted(path for path in tree.rglob("*") if path.is_file())
        file = dice.choice(files)
        kept, text = file.read_bytes(), b""
        way = dice.choice(["gone", "folder", "empty", "cut", "foreign", "bytes"])
        file.unlink()
        if way == "folder":
            file.mkdir()
        elif way != "gone":
            cut = kept[: dice.randint(0, len(kept))].strip()
            foreign = dice.choice(FOREIGN).encode()
            noise = dice.randbytes(9).replace(b"0", b"")
            text = {"empty": b"", "cut": cut, "foreign": foreign, "bytes": noise}[way]
            file.write_bytes(text)
        samples = taken(self.samplers[tree])
        if file.is_dir():
            shutil.rmtree(file)
        file.write_bytes(kept)
        return os.fspath(file), samples, text


def check_tree(trees: Trees, dice: random.Random) -> None:
    """Spoil once: no exception, and a 0 that was none before stands in the spoiled file."""
    file, samples, text = trees.spoil_and_sample(dice)
    for row in samples:
        fresh = row.value == 0 and (row.device, row.counter) not in trees.zeros
        if fresh and text.strip().strip(b"0"):
            raise AssertionError(f"{row.counter} is 0, {file} holds {text!r}")
