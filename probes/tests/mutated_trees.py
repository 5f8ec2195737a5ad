"""Sysfs trees spoiled at random, and the probes that read them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from probes.gpu import GpuProbe
from probes.gpu_nvml import Nvml
from probes.nic import NicProbe
from probes.nvme import NvmeProbe
from probes.tests.kernel_trees import amd_tree, mlx5_tree, nvme_tree
from probes.tests.mutations import FOREIGN

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from probes.readings import Sample


class Trees:
    """The three trees below one directory, each with its probe."""

    def __init__(self, root: Path) -> None:
        self.nic, self.nvme, self.gpu = root / "nic", root / "nvme", root / "gpu"
        mlx5_tree(self.nic)
        nvme_tree(self.nvme)
        amd_tree(self.gpu)
        self.probes: dict[Path, NicProbe | NvmeProbe | GpuProbe] = {
            self.nic: NicProbe(("ens1",), self.nic, ioctl=False),
            self.nvme: NvmeProbe(None, self.nvme),
            self.gpu: GpuProbe(self.gpu, Nvml(reason="absent: a fake without cards")),
        }
        self.zeros = {
            (row.device, row.counter)
            for probe in self.probes.values()
            for sample in probe.sample()
            for row in sample.readings
            if row.value == 0
        }

    def spoil_and_sample(self, dice: random.Random) -> tuple[str, Sequence[Sample], bytes]:
        """Spoil one file, sample, mend it; the file, the samples and what was in the file."""
        tree = dice.choice(list(self.probes))
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
        samples = self.probes[tree].sample()
        if file.is_dir():
            shutil.rmtree(file)
        file.write_bytes(kept)
        return os.fspath(file), samples, text


def check_tree(trees: Trees, dice: random.Random) -> None:
    """Spoil once: no exception, and a 0 that was none before stands in the spoiled file."""
    file, samples, text = trees.spoil_and_sample(dice)
    for sample in samples:
        for row in sample.readings:
            fresh = row.value == 0 and (row.device, row.counter) not in trees.zeros
            if fresh and text.strip().strip(b"0"):
                raise AssertionError(f"{row.counter} is 0, {file} holds {text!r}")
