"""A guest of QEMU with a Debian kernel: the md, NVMe and multipath that this kernel does not have.

The guest sees this machine's file system read-only, so that the same Python and the same checkout
run inside; what it finds comes back through one directory. Everything is emulated: slow, but it
needs no hardware's help, and its clock counts instructions. The kernel's package is only unpacked:

    apt-get download linux-image-6.12-amd64    # the package it names, or any other version
    dpkg-deb -x linux-image-*.deb DIR && depmod -b DIR "$(ls DIR/lib/modules)"
    R8_GUEST_KERNEL=DIR nox -s qualify
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
KERNEL_VARIABLE = "R8_GUEST_KERNEL"
TOOLS = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "mdadm", "mkfs.xfs")
# What the guest needs before it can see the host's files, where the rest of its modules lie.
FIRST_MODULES = ("virtio_pci", "9pnet_virtio", "9p")
# Emulated, a Python that imports its packages through 9p takes minutes.
TIMEOUT_S = 1800.0
MEMORY_MIB = 1024
DRIVES = 4
DRIVE_BYTES = 256 << 20

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /host
/bin/busybox mount -t proc proc /proc
for module in $(/bin/busybox cat /modules.txt); do /bin/busybox insmod /$module; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host
for name in proc:proc sysfs:sys devtmpfs:dev tmpfs:run; do
  /bin/busybox mount -t ${{name%%:*}} none /host/${{name##*:}}
done
/bin/busybox mkdir -p /host/run/out /host/run/kv /host/run/tmp
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /host/run/out
/bin/busybox chroot /host /bin/sh /run/out/inside.sh > /host/run/out/inside.log 2>&1
/bin/busybox echo $? > /host/run/out/rc
/bin/busybox sync
/bin/busybox poweroff -f
"""
INSIDE = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/tmp
export TMPDIR=/run/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={checkout}
set -e
ip link set lo up
modprobe -d {kernel} -a nvme raid0 xfs loop
# Controllers are scanned in the background: {paths} paths below {drives} heads.
until [ "$(ls -d /sys/block/nvme*c*n* | wc -l)" = {paths} ] && [ -b /dev/nvme0n{drives} ]; do
  sleep 0.2
done
cd {checkout}
exec {python} -c "$(cat /run/out/program.py)"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """An unpacked kernel package."""

    folder: Path
    version: str

    @property
    def image(self) -> Path:
        return self.folder / "boot" / f"vmlinuz-{self.version}"


def find_kernel() -> Kernel:
    """The kernel the environment names, or one that is installed here; skips where none is."""
    for tool in TOOLS:
        if shutil.which(tool) is None and not Path("/usr/sbin", tool).exists():
            pytest.skip(f"no {tool} here: the guest's cases are capture only")
    for folder in filter(None, (os.environ.get(KERNEL_VARIABLE), "/")):
        for image in sorted(Path(folder, "boot").glob("vmlinuz-*-amd64"), reverse=True):
            version = image.name.removeprefix("vmlinuz-")
            if Path(folder, "lib", "modules", version, "modules.dep").exists():
                return Kernel(folder=Path(folder), version=version)
    pytest.skip(f"no Debian kernel: unpack one and name it in {KERNEL_VARIABLE}; capture only")


def run_in_guest(kernel: Kernel, out: Path, program: str) -> str:
    """Run a Python program as root of the guest; returns what it and its kernel said.

    `/run/out` inside is `out` here. Four NVMe namespaces wait there, each with two paths.
    """
    out.mkdir()
    (out / "program.py").write_text(program)
    (out / "inside.sh").write_text(
        INSIDE.format(
            checkout=CHECKOUT,
            kernel=kernel.folder,
            python=sys.executable,
            drives=DRIVES,
            paths=2 * DRIVES,
        )
    )
    work = out.parent / f"{out.name}-boot"
    _initramfs(kernel, work)
    subprocess.run(_argv(kernel, work, out), check=True, timeout=TIMEOUT_S, capture_output=True)
    log = out / "inside.log"
    said = log.read_text() if log.exists() else (work / "console.log").read_text(errors="replace")
    rc = out / "rc"
    assert rc.exists(), said[-2000:]
    assert rc.read_text().strip() == "0", said[-2000:]
    return said


def _initramfs(kernel: Kernel, work: Path) -> None:
    root = work / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin" / "busybox")
    listed = subprocess.run(
        [
            *("modprobe", "-d", str(kernel.folder), "-S", kernel.version),
            *("--show-depends", "-a", *FIRST_MODULES),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = []
    for line in listed.splitlines():
        path = Path(line.split()[1])
        if line.startswith("insmod") and path.exists():
            data = path.read_bytes()
            name = path.name.removesuffix(".xz")
            (root / name).write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
            names.append(name)
    (root / "modules.txt").write_text("\n".join(dict.fromkeys(names)))
    (root / "init").write_text(INIT.format())
    (root / "init").chmod(0o755)
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet"],
        input=files.encode(),
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    (work / "initramfs.cpio").write_bytes(archive)
    for number in range(DRIVES):
        with (work / f"drive{number}.img").open("wb") as file:
            file.truncate(DRIVE_BYTES)


def _argv(kernel: Kernel, work: Path, out: Path) -> list[str]:
    words = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max"]
    # Time passes with instructions: a busy machine outside makes no hole in the samples inside.
    words += ["-icount", "shift=1", "-rtc", "clock=vm"]
    words += ["-m", str(MEMORY_MIB), "-smp", "1", "-nodefaults", "-no-reboot", "-display", "none"]
    words += ["-serial", f"file:{work / 'console.log'}", "-kernel", str(kernel.image)]
    words += ["-initrd", str(work / "initramfs.cpio")]
    words += ["-append", "console=ttyS0 quiet panic=-1"]
    for tag, path, more in (("host", "/", ",readonly=on"), ("out", str(out), "")):
        words += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{more}"]
        words += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    # One subsystem, two controllers: every namespace is a head with two hidden paths.
    words += ["-device", "nvme-subsys,id=sub0,nqn=r8-guest"]
    words += ["-device", "nvme,id=ctrl0,serial=r8,subsys=sub0"]
    words += ["-device", "nvme,id=ctrl1,serial=r8,subsys=sub0"]
    for number in range(DRIVES):
        image = work / f"drive{number}.img"
        words += ["-drive", f"id=d{number},if=none,format=raw,file={image}"]
        words += ["-device", f"nvme-ns,drive=d{number},bus=ctrl0,nsid={number + 1},shared=on"]
    return words
