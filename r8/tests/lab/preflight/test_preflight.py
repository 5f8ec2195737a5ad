from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from r8.errors import SiteError
from r8.lab.preflight import cluster
from r8.lab.preflight import preflight as preflight_module
from r8.lab.preflight.cluster import device_checks, engine_checks
from r8.lab.preflight.kv import KvScenario
from r8.lab.preflight.preflight import preflight, require_ready
from r8.lab.site.load import load_site
from r8.lab.site.machines import Device, Engine, Host, Stress
from r8.lab.transfer.checkpointing import device_bytes

if TYPE_CHECKING:
    from r8.lab.site.file import LoadedSite

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
REHEARSAL = SITES / "rehearsal.toml"
SCENARIO = "r1-parallel-read"


def _changed(loaded: LoadedSite, **fields: Any) -> LoadedSite:
    return msgspec.structs.replace(loaded, site=msgspec.structs.replace(loaded.site, **fields))


def _planned(loaded: LoadedSite, **fields: Any) -> LoadedSite:
    plan = msgspec.structs.replace(loaded.site.scenarios[SCENARIO], **fields)
    return _changed(loaded, scenarios={SCENARIO: plan})


def _cluster(tmp_path: Path, **fields: Any) -> LoadedSite:
    """The rehearsal's plan on a plain directory, as a cluster's site file would say it."""
    device = Device(name="array", host="local", kv_dir=str(tmp_path), block_device="loop0")
    loaded = load_site(REHEARSAL)
    engine = Engine(host="local", command=("true",), python=("python3",))
    return _changed(loaded, rehearsal=None, devices=(device,), engine=engine, **fields)


def _failed(loaded: LoadedSite, runs_root: Path) -> dict[str, str]:
    checks = preflight(loaded, SCENARIO, runs_root)
    assert all(bool(one.next_step) != one.ok for one in checks)
    return {one.name: one.saw for one in checks if not one.ok}


def test_a_port_in_use_is_named_with_what_to_type(tmp_path: Path) -> None:
    loaded = load_site(REHEARSAL)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        instance = msgspec.structs.replace(loaded.site.instances[0], port=port)
        busy = _changed(loaded, instances=(instance,))
        with pytest.raises(SiteError, match=f"port {port}.*ss -ltnp"):
            require_ready(busy, SCENARIO, tmp_path)


def test_a_temporary_directory_too_long_for_the_engines_sockets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/" + "x" * 40)
    shipped = load_site(REHEARSAL)
    assert "temporary directory" not in _failed(shipped, tmp_path)
    engine = msgspec.structs.replace(shipped.site.engine, env={})
    failed = _failed(_changed(shipped, engine=engine), tmp_path)
    assert "41 characters" in failed["temporary directory"]


def test_too_few_flush_sessions_are_refused_with_the_arithmetic(tmp_path: Path) -> None:
    failed = _failed(_planned(load_site(REHEARSAL), flush_sessions=1), tmp_path)
    assert "103284736 bytes, DRAM tier 335544320" in failed["flush"]


def test_a_pool_larger_than_the_device_is_refused(tmp_path: Path) -> None:
    big = _planned(_cluster(tmp_path), bytes_per_token=1 << 40)
    assert "the pool needs" in _failed(big, tmp_path / "runs")["pool on array"]


def test_a_missing_device_is_named(tmp_path: Path) -> None:
    loaded = _cluster(tmp_path / "not-mounted")
    assert "is not a directory" in _failed(loaded, tmp_path)["device array"]


def test_evidence_on_the_kv_device_is_refused(tmp_path: Path) -> None:
    assert "lies on a KV device" in _failed(_cluster(tmp_path), tmp_path / "runs")["run directory"]


def test_an_engine_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    loaded = _cluster(tmp_path)
    engine = msgspec.structs.replace(loaded.site.engine, python=("/no/such/python",))
    assert "/no/such/python" in _failed(_changed(loaded, engine=engine), tmp_path)["engine python"]


def test_a_python_without_a_known_lmcache_is_named(tmp_path: Path) -> None:
    assert "LMCache" in _failed(_cluster(tmp_path), tmp_path)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    loaded = _cluster(tmp_path, vars={"model_dir": str(tmp_path / "none")})
    assert "is not a directory" in _failed(loaded, tmp_path)["model"]


def test_a_scenario_the_site_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="r9-unknown"):
        require_ready(load_site(REHEARSAL), "r9-unknown", tmp_path)


def test_an_lmcache_the_patch_series_does_not_know_is_named_before_anything_is_built(
    tmp_path: Path,
) -> None:
    loaded = load_site(REHEARSAL)
    assert loaded.site.rehearsal is not None
    rehearsal = msgspec.structs.replace(loaded.site.rehearsal, lmcache=("0.9.9", "0.5.6"))
    failed = _failed(_changed(loaded, rehearsal=rehearsal), tmp_path)
    assert "series.toml" in failed["LMCache 0.9.9"]
    assert "LMCache 0.5.6" not in failed


def test_dropping_caches_without_the_right_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    loaded = _cluster(tmp_path)
    assert "drop caches" in _failed(loaded, tmp_path)
    sudo = Host(name="local", drop_caches=("sudo", "-n", "drop"))
    assert "drop caches" not in _failed(_changed(loaded, hosts=(sudo,)), tmp_path)


def test_a_device_whose_host_is_not_reached_says_why() -> None:
    site = load_site(SITES / "nvidia.toml").site
    away = ("sh", "-c", "echo 'ssh: Could not resolve hostname' >&2; exit 255")
    host = msgspec.structs.replace(site.hosts[0], exec_prefix=away)
    site = msgspec.structs.replace(site, hosts=(host,))
    plan = site.scenarios["r2-cold-recovery"]
    (found,) = device_checks(site, site.device("array"), 0, plan)
    assert "is not a directory on node0 (ssh: Could not resolve hostname)" in found.saw


def test_a_transfer_asks_each_device_once_for_room_for_its_largest_cell(
    tmp_path: Path,
) -> None:
    loaded = load_site(SITES / "mi308x-r1-checkpoint.toml")
    plan = loaded.site.transfers["r1-checkpoint"]
    snapshot, tensor = 65_600_000_000, 536_870_912
    assert device_bytes(plan, "array-full-each") == 8 * snapshot + 8 * tensor
    assert device_bytes(plan, "array-sharded") == snapshot + 8 * tensor
    array, local = loaded.site.devices
    site = _changed(loaded, devices=(msgspec.structs.replace(array, kv_dir=str(tmp_path)), local))
    found = preflight(site, "r1-checkpoint", tmp_path / "runs")
    pool = next(one for one in found if one.name == "pool on array")
    assert pool.saw.endswith(f"the pool needs {round(1.1 * (8 * snapshot + 8 * tensor))}")
    names = [one.name for one in found]
    assert [names.count(f"device {name}") for name in ("array", "local")] == [1, 1]


@pytest.mark.parametrize("there", [True, False])
def test_a_checkpoint_needs_fio_to_write_and_no_room_for_what_others_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    """Also where the site switched the reading calibration off: without fio every cell fails."""
    tool = tmp_path / "bin" / "fio"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho fio-3.36; exit {0 if there else 1}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    loaded = load_site(SITES / "mi308x-r1-checkpoint.toml")
    for read_bytes in (None, 0):
        devices = tuple(
            msgspec.structs.replace(one, kv_dir=str(tmp_path), fio=Stress(read_bytes=read_bytes))
            for one in loaded.site.devices
        )
        site = _changed(loaded, devices=devices).site
        plan = site.transfers["r1-checkpoint"]
        found = {one.name: one for one in device_checks(site, site.devices[0], 0, plan)}
        one = found["fio on array"]
        assert one.ok is there
        assert "its files need" not in one.saw
        assert one.next_step == ("" if there else "install fio there")


def test_an_arm_with_fewer_workers_needs_fewer_models(tmp_path: Path) -> None:
    loaded = load_site(SITES / "mi308x-r1-models.toml")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.safetensors").write_bytes(b"w")
    plan = loaded.site.transfers["r1-model-load"]
    arms = {
        name: msgspec.structs.replace(one, files_dir=str(tmp_path))
        for name, one in plan.arm.items()
    }
    plan = msgspec.structs.replace(plan, arm=arms, levels={"array-engine": (1,)})
    changed = _changed(loaded, transfers={"r1-model-load": plan})
    found = {one.name: one.ok for one in preflight(changed, "r1-model-load", tmp_path)}
    assert found["models of array-engine"]
    assert not found["models of array"]


def test_fio_before_every_block_counts_into_the_duration_of_loading_too(tmp_path: Path) -> None:
    loaded = load_site(SITES / "mi308x-r1-models.toml")
    found = {one.name: one for one in preflight(loaded, "r1-model-load", tmp_path)}
    words = "about 120 min by the site's estimates, and at most 23 min of fio"
    assert found["duration"].saw.endswith(words)


@pytest.mark.parametrize(
    "site", ["mi308x-480b", "nvidia", "rocm-bare-metal", "mi308x-r1", "rehearsal"]
)
def test_shipped_plans_store_no_more_at_once_than_the_tier_holds(site: str) -> None:
    loaded = load_site(SITES / f"{site}.toml")
    for name in loaded.site.scenarios:
        found = {one.name: one for one in KvScenario(loaded=loaded, name=name).of_plan()}
        assert not found["KV populated"].warning, name


def test_storing_more_at_once_than_the_tier_holds_is_warned_of_with_the_number_that_fits() -> None:
    loaded = load_site(SITES / "mi308x-480b.toml")
    plan = msgspec.structs.replace(loaded.site.scenarios["r3-tp4x2"], populate_concurrency=4)
    changed = KvScenario(loaded=_changed(loaded, scenarios={"r3-tp4x2": plan}), name="r3-tp4x2")
    found = {one.name: one for one in changed.of_plan()}["KV populated"]
    assert found.saw.startswith("4 x 7671382016 = 30685528064 bytes")
    assert found.warning.endswith("set populate_concurrency = 2")


@pytest.mark.parametrize(
    ("ours", "theirs", "warned"),
    [("1000", "0", True), ("1000", "1000", False), ("0", "1000", False), ("", "", True)],
)
def test_probes_that_may_not_look_at_the_engines_user_are_warned_of(
    tmp_path: Path, ours: str, theirs: str, *, warned: bool
) -> None:
    """Stand-ins on PATH: an `id` of this host, and the container's own; "" tells nothing."""
    tool = tmp_path / "id"
    tool.write_text(f"#!/bin/sh\necho ${{R8_UID-{ours}}}\n")
    tool.chmod(0o755)
    engine = Engine(
        host="local",
        command=("true",),
        python=("python3",),
        exec_prefix=("env", f"R8_UID={theirs}"),
        root_pid=("echo", "1"),
    )
    host = Host(name="local", exec_prefix=("env", f"PATH={tmp_path}:/usr/bin:/bin"))
    site = _changed(load_site(REHEARSAL), rehearsal=None, engine=engine, hosts=(host,)).site
    found = next(one for one in engine_checks(site) if one.name == "probes' user")
    assert bool(found.warning) is warned


@pytest.mark.parametrize("fstype", ["nfs4", "tmpfs"])
def test_a_network_mount_is_accepted_for_the_role_baseline_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fstype: str
) -> None:
    """R9 loads from an NFS mount, which has no block device on this host."""
    found = {"device": None, "kind": None, "mount": "/mnt/nfs", "fstype": fstype, "source": "s:/x"}
    monkeypatch.setattr(cluster, "topology", lambda *_: found)
    loaded = load_site(SITES / "atlas-910b-r9.toml")
    devices = tuple(
        msgspec.structs.replace(one, kv_dir=str(tmp_path), fio=Stress(read_bytes=0))
        for one in loaded.site.devices
    )
    checks = preflight(_changed(loaded, devices=devices), "r1-model-load", tmp_path / "runs")
    by_name = {one.name: one for one in checks}
    for device, ready in (("nfs", fstype == "nfs4"), ("array", False)):
        one = by_name[f"topology of {device}"]
        assert (one.ok, bool(one.warning), bool(one.next_step)) == (ready, ready, not ready)
        assert f"no block device: {fstype} from s:/x at /mnt/nfs" in one.saw


def test_this_shells_temporary_directory_is_none_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/a/temporary/directory/with/a/long/name")
    loaded = load_site(SITES / "mi308x-480b.toml")
    names = [one.name for one in preflight(loaded, "r2-cold-recovery", tmp_path)]
    assert "temporary directory" not in names
    own = msgspec.structs.replace(loaded.site.engine, env={"TMPDIR": tempfile.gettempdir()})
    found = preflight(_changed(loaded, engine=own), "r2-cold-recovery", tmp_path)
    assert [one.ok for one in found if one.name == "temporary directory"] == [False]
    bare = load_site(SITES / "rocm-bare-metal.toml")
    found = preflight(bare, "r2-cold-recovery", tmp_path)
    assert [one.ok for one in found if one.name == "temporary directory"] == [False]


def test_a_directory_of_that_name_here_is_not_the_device_of_another_host(tmp_path: Path) -> None:
    loaded = load_site(SITES / "nvidia.toml")
    devices = tuple(
        msgspec.structs.replace(one, kv_dir=str(tmp_path)) for one in loaded.site.devices
    )
    away = _changed(loaded, devices=devices)
    near = _changed(away, hosts=(Host(name="node0"),))
    for site, ready in ((away, True), (near, False)):
        one = preflight_module._runs_root(site.site, tmp_path / "runs")
        assert one.ok is ready, one.saw
