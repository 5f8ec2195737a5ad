"""Captured kernel text, and the file trees it was captured from, rebuilt below a directory."""

from __future__ import annotations

import re
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "samples"
_MOUNTINFO = "25 1 9:0 / /mnt/xfs rw,relatime - xfs /dev/md0 rw,noquota\n"


def capture(name: str) -> str:
    return (SAMPLES / f"capture_{name}").read_text(encoding="utf-8")


def captures_of(tool: str) -> str:
    """How the names of a tool's captures begin, after `capture_`: `amd_smi_` for `amd-smi`."""
    return tool.replace("-", "_") + "_"


def snapshots(name: str) -> dict[str, str]:
    """A captured sequence of diskstats, by the label of each snapshot."""
    found: dict[str, str] = {}
    for block in re.split(r"^# ", capture(name), flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        found[head.split()[1]] = body
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def captured_host(root: Path, diskstats: str, *, hidden: bool = True) -> tuple[Path, Path]:
    """Sysfs and proc roots of the captured machine: md0 on four NVMe heads, one path each."""
    sys_root, proc_root = root / "sys", root / "proc"
    numbers = {line.split()[2]: ":".join(line.split()[:2]) for line in diskstats.splitlines()}
    for line in capture("sysfs_block.txt").splitlines():
        name, *pairs, place = line.split()
        facts = dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
        if facts["hidden"] == "1" and not hidden:
            continue
        device = sys_root / place.removeprefix("../")
        _write(device / "diskseq", facts["diskseq"])
        _write(device / "dev", numbers[name])
        _write(device / "queue" / "iostats", facts["iostats"])
        if facts["ana"]:
            _write(device / "ana_state", facts["ana"])
        _link(sys_root / "class" / "block" / name, device)
        _link(sys_root / "dev" / "block" / numbers[name], device)
    for line in capture("sysfs_nvme.txt").splitlines():
        name, _, value = line.partition(": ")
        _write(sys_root / "class" / "nvme" / name, value)
    _captured_md(sys_root)
    _write(proc_root / "self" / "mountinfo", _MOUNTINFO.strip())
    (proc_root / "diskstats").write_text(diskstats, encoding="utf-8")
    return sys_root, proc_root


def _captured_md(sys_root: Path) -> None:
    device = sys_root / "devices" / "virtual" / "block" / "md0"
    line = next(line for line in capture("mdstat.txt").splitlines() if line.startswith("md0"))
    _write(device / "md" / "level", "raid0")
    _write(device / "md" / "array_state", "clean")
    _write(device / "md" / "chunk_size", str(512 << 10))
    for name, slot in re.findall(r"(\w+)\[(\d+)\]", line):
        _write(device / "md" / f"dev-{name}" / "slot", slot)
        _link(device / "slaves" / name, sys_root / "class" / "block" / name)
    _write(device / "diskseq", "15")
    _write(device / "dev", "9:0")
    _write(device / "queue" / "iostats", "1")
    _link(sys_root / "class" / "block" / "md0", device)
    _link(sys_root / "dev" / "block" / "9:0", device)
