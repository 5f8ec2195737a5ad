"""The NFS probe, on text in the kernel's form; written for these tests, captured on no machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from probes.errors import ProbeError
from probes.network.nfs import BYTE_COUNTERS, NFS_DIRS, NfsSampler, mount_of, parse_mountstats
from probes.plan import make_plan
from probes.tests.support.samplers import rows, taken

if TYPE_CHECKING:
    from pathlib import Path

# As fs/nfs/super.c prints it: a block a mount, tabs before its lines; two mounts are NFS.
TEXT = """\
device proc mounted on /proc with fstype proc
device 192.0.2.7:/export mounted on /mnt/nfs with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,timeo=600,sec=sys
\tage:\t3600
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x1ffdf,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t100 200 300 400 {server} 600 7 8
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 12 90 90 0 90 0 2 0 0
\tper-op statistics
\t        READ: 90 90 0 16200 9440 1 50 60 0
device 192.0.2.7:/models mounted on /mnt/nfs/my\\040models with fstype nfs statvers=1.1
\tage:\t60
\tbytes:\t1 2 3 4 5 6 7
device /dev/md0 mounted on /mnt/xfs with fstype xfs
"""


def _probe(root: Path, *directories: str) -> NfsSampler:
    (root / "self").mkdir(exist_ok=True)
    return NfsSampler(directories, root)


def _says(root: Path, text: str) -> None:
    (root / "self" / "mountstats").write_text(text)


def test_the_eight_byte_counters_and_the_age_of_each_nfs_mount_are_read() -> None:
    first, second = parse_mountstats(TEXT.format(server=500))
    assert (first.mount, first.source) == ("/mnt/nfs", "192.0.2.7:/export")
    assert [first.counters[name] for name in BYTE_COUNTERS] == [100, 200, 300, 400, 500, 600, 7, 8]
    assert first.counters["age_s"] == 3600
    # Seven numbers are not eight: none of them is given a name.
    assert (second.mount, second.counters) == ("/mnt/nfs/my models", {"age_s": 60})


@pytest.mark.parametrize(
    ("directory", "mount"),
    [
        ("/mnt/nfs/models/32B", "/mnt/nfs"),
        ("/mnt/nfs/my models/a", "/mnt/nfs/my models"),
        ("/mnt/nfs2", None),
        ("/mnt/xfs/models", None),
    ],
)
def test_a_directory_lies_on_the_nearest_nfs_mount_above_it(
    directory: str, mount: str | None
) -> None:
    found = mount_of(parse_mountstats(TEXT.format(server=1)), directory)
    assert (None if found is None else found.mount) == mount


def test_a_mount_is_sampled_once_and_a_directory_elsewhere_says_so(tmp_path: Path) -> None:
    probe = _probe(tmp_path, "/mnt/nfs/a", "/mnt/nfs/b", "/mnt/xfs")
    _says(tmp_path, TEXT.format(server=500))
    found = rows(probe)
    assert found["/mnt/nfs", "server_read_bytes"].value == 500
    assert found["/mnt/nfs", "source"].text == "192.0.2.7:/export"
    assert found["/mnt/xfs", "age_s"].reason == "absent: on no NFS mount"
    assert {device for device, _ in found} == {"/mnt/nfs", "/mnt/xfs"}


def test_a_mount_made_anew_begins_an_epoch(tmp_path: Path) -> None:
    probe = _probe(tmp_path, "/mnt/nfs/a")
    _says(tmp_path, TEXT.format(server=500))
    probe.sample()
    _says(tmp_path, TEXT.format(server=900).replace("age:\t3600", "age:\t2"))
    found = rows(probe)
    assert found["/mnt/nfs", "server_read_bytes"].epoch == 1
    assert "age_s went back" in str(found["/mnt/nfs", "epoch_cause"].text)


def test_a_kernel_without_the_file_and_a_block_without_numbers_have_reasons(tmp_path: Path) -> None:
    probe = _probe(tmp_path, "/mnt/nfs/a", "/mnt/nfs/my models")
    lost, _ = taken(probe)
    assert lost.value is None
    assert str(lost.reason).startswith("absent: FileNotFoundError")
    _says(tmp_path, TEXT.format(server="x"))
    found = rows(probe)
    assert found["/mnt/nfs", "server_read_bytes"].reason == "absent: not told for it"
    assert found["/mnt/nfs", "age_s"].value == 3600


def test_a_plan_names_absolute_directories() -> None:
    plan = make_plan({"nfs_dirs": ["/mnt/nfs", "/mnt/nfs"]}, "plan.json", {}, [NFS_DIRS])
    assert plan[NFS_DIRS] == ("/mnt/nfs",)
    with pytest.raises(ProbeError, match="give absolute paths"):
        make_plan({"nfs_dirs": ["models"]}, "plan.json", {}, [NFS_DIRS])
