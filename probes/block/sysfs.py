"""What a block device is made of, from sysfs: members, paths, parents, backing files, identity.

Counters of every layer are recorded as they are; whoever judges decides which layer to believe. On
kernels before 6.2, for example, the head of an NVMe multipath device counts nothing and its hidden
paths count everything. `kind` and `members` are what that rule needs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import reason_of
from ..kernel_files import counter_in, names_in, read_word
from .mounts import Mount, mount_of_path, mounts_of_device, parse_mountinfo

_PATH_NAME = re.compile(r"^nvme(\d+)c(\d+)n(\d+)$")
_HEAD_NAME = re.compile(r"^nvme(\d+)n(\d+)$")
_CONTROLLER = re.compile(r"^nvme\d+$")
_BACKING_DELETED = " (deleted)"
# A cycle in sysfs would be a kernel bug; a bound costs nothing.
_MAX_LAYERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One block device. `facts` are further words, `reasons` say why a fact is not known."""

    name: str
    kind: str  # loop, md, nvme-head, nvme-path, disk, partition or dm
    major_minor: str | None
    members: tuple[str, ...] = ()  # md and dm: below it, in order; nvme-head: its paths
    parent: str | None = None  # the disk of a partition, the device below a loop's backing file
    diskseq: int | None = None
    facts: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def composition(self) -> str:
        """Changes when another device took this one's name, or it is composed otherwise."""
        backing = self.facts.get("backing_file", "-")
        return f"{self.kind} {self.major_minor} [{','.join(self.members)}] {backing}"

    def below(self) -> tuple[str, ...]:
        """Devices whose counters belong beside this one's."""
        return (*self.members, *((self.parent,) if self.parent else ()))


class Sysfs:
    """Reads block devices under a sysfs and a proc root; tests give roots of their own."""

    def __init__(self, sys_root: Path = Path("/sys"), proc_root: Path = Path("/proc")) -> None:
        self._sys = sys_root
        self._proc = proc_root

    def mounts(self) -> list[Mount]:
        """The mount table of this process."""
        path = self._proc / "self" / "mountinfo"
        return parse_mountinfo(path.read_text(encoding="utf-8", errors="replace"))

    def name_of(self, major_minor: str) -> str | None:
        """Kernel name of a block device number such as `259:4`; None for an anonymous one."""
        link = self._sys / "dev" / "block" / major_minor
        return Path(os.path.realpath(link)).name if link.exists() else None

    def diskseq(self, name: str) -> int | None:
        """Serial number of this disk instance (kernel 5.15 and later); None when not given."""
        return counter_in(f"{self._sys}/class/block/{name}/diskseq")

    def device(self, name: str, mounts: list[Mount]) -> Device | None:
        """Everything known of one device; None when the kernel has no device of that name."""
        directory = self._sys / "class" / "block" / name
        if not directory.exists():
            return None
        facts: dict[str, str] = {}
        reasons: dict[str, str] = {}
        kind = self._kind(name, directory)
        major_minor = _word(directory / "dev", "major_minor", {}, reasons)
        parent = _parent(directory) if kind == "partition" else None
        if kind == "loop":
            parent = self._below_loop(directory, mounts, facts, reasons)
        self._state(name, kind, directory, facts, reasons)
        whole = Path(os.path.realpath(directory)).parent if kind == "partition" else directory
        _word(whole / "queue" / "iostats", "iostats", facts, reasons)
        points = mounts_of_device(mounts, major_minor) if major_minor else []
        if points:
            facts["mount"] = ",".join(points)
        else:
            reasons["mount"] = "absent: not mounted"
        diskseq = self.diskseq(parent if kind == "partition" and parent else name)
        if diskseq is None:
            reasons["diskseq"] = "absent: this kernel gives no diskseq for it"
        return Device(
            name=name,
            kind=kind,
            major_minor=major_minor,
            members=self._members(name, kind, directory),
            parent=parent,
            diskseq=diskseq,
            facts=facts,
            reasons=reasons,
        )

    def layers(self, names: tuple[str, ...], mounts: list[Mount]) -> dict[str, Device | None]:
        """The named devices and all below them, upper layers first; None for an absent one."""
        found: dict[str, Device | None] = {}
        queue = list(names)
        while queue and len(found) < _MAX_LAYERS:
            name = queue.pop(0)
            if name in found:
                continue
            device = self.device(name, mounts)
            found[name] = device
            queue.extend(device.below() if device else ())
        return found

    def _kind(self, name: str, directory: Path) -> str:
        if (directory / "partition").exists():
            return "partition"
        # A loop device without a backing file has no loop folder, but is still one.
        folders = (("md", "md"), ("dm", "dm"), ("loop", "loop"))
        for folder, kind in folders:
            if (directory / folder).is_dir() or re.fullmatch(rf"{folder}-?\d+", name):
                return kind
        if _PATH_NAME.match(name):
            return "nvme-path"
        return "nvme-head" if self._paths(name, directory) else "disk"

    def _paths(self, name: str, directory: Path) -> tuple[str, ...]:
        head = _HEAD_NAME.match(name)
        if not head:
            return ()
        paths = set()
        for entry in (*names_in(f"{directory}/multipath"), *names_in(f"{self._sys}/class/block")):
            path = _PATH_NAME.match(entry)
            if path and (path.group(1), path.group(3)) == head.groups():
                paths.add((int(path.group(2)), entry))
        return tuple(entry for _, entry in sorted(paths))

    def _members(self, name: str, kind: str, directory: Path) -> tuple[str, ...]:
        if kind == "nvme-head":
            return self._paths(name, directory)
        if kind not in {"md", "dm"}:
            return ()
        members = names_in(f"{directory}/slaves")
        if kind == "md":
            members.sort(key=lambda member: (_md_slot(directory, member), member))
        return tuple(members)

    def _below_loop(
        self, directory: Path, mounts: list[Mount], facts: dict[str, str], reasons: dict[str, str]
    ) -> str | None:
        backing = _word(directory / "loop" / "backing_file", "backing_file", facts, reasons)
        _word(directory / "loop" / "dio", "direct_io", facts, reasons)
        if backing is None:
            return None
        mount = mount_of_path(mounts, backing.removesuffix(_BACKING_DELETED))
        if mount is None:
            reasons["backing_fstype"] = "absent: no mount of this process holds the backing file"
            return None
        facts["backing_fstype"] = mount.fstype
        return self.name_of(mount.major_minor)

    def _state(
        self,
        name: str,
        kind: str,
        directory: Path,
        facts: dict[str, str],
        reasons: dict[str, str],
    ) -> None:
        if kind == "loop":
            facts["state"] = "attached" if "backing_file" in facts else "detached"
            return
        if kind == "md":
            _word(directory / "md" / "array_state", "state", facts, reasons)
            _word(directory / "md" / "level", "level", facts, reasons)
            _word(directory / "md" / "chunk_size", "chunk_bytes", facts, reasons)
            return
        if kind == "dm":
            suspended = _word(directory / "dm" / "suspended", "suspended", {}, reasons)
            if suspended is not None:
                facts["state"] = "suspended" if suspended == "1" else "active"
            _word(directory / "dm" / "name", "dm_name", facts, reasons)
            return
        controller = Path(os.path.realpath(directory)).parent.name
        if name.startswith("nvme") and _CONTROLLER.match(controller):
            root = self._sys / "class" / "nvme" / controller
            for fact in ("state", "transport", "address"):
                _word(root / fact, fact, facts, reasons)
            if kind == "nvme-path":
                _word(directory / "ana_state", "ana_state", facts, reasons)
            return
        _word(directory / "device" / "state", "state", facts, reasons)


def _word(path: Path, fact: str, facts: dict[str, str], reasons: dict[str, str]) -> str | None:
    """Read one sysfs file of one word into `facts`, or its failure into `reasons`."""
    try:
        text = read_word(str(path))
    except OSError as error:
        reasons[fact] = reason_of(error)
        return None
    facts[fact] = text
    return text


def _md_slot(directory: Path, member: str) -> int:
    slot = _word(directory / "md" / f"dev-{member}" / "slot", "slot", {}, {})
    # Spares and failed members say "none": they come last.
    return int(slot) if slot and slot.isdigit() else 1 << 30


def _parent(directory: Path) -> str | None:
    parent = Path(os.path.realpath(directory)).parent.name
    return parent if parent != "block" else None
