from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.block.topology import BLOCK_DEVICES
from probes.catalogue import PROBES
from probes.cli import _plan, main
from probes.errors import ProbeError
from probes.plan import Plan, read_plan
from probes.process.counters import ENGINES
from probes.record.iostat import IOSTAT


def _load(tmp_path: Path, values: object) -> Plan:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return _plan(*read_plan(str(path)))


def test_a_plan_keeps_what_it_says_and_the_defaults_for_the_rest(tmp_path: Path) -> None:
    plan = _load(
        tmp_path,
        {
            "host": "gpu01",
            "block_devices": ["md0", "/dev/nvme0n1", "md0"],
            "engines": {"a": 4711},
            "metrics": {"a": "http://127.0.0.1:8000/metrics"},
            "rates_hz": {"disk": 20},
            "iostat": False,
        },
    )
    assert plan[BLOCK_DEVICES] == ("md0", "nvme0n1")
    assert plan.rates_hz == {**{probe.name: probe.rate_hz for probe in PROBES}, "disk": 20.0}
    assert (plan.host, plan[ENGINES], plan[IOSTAT]) == ("gpu01", {"a": 4711}, False)


def test_a_plan_given_on_the_command_line_is_the_same_as_one_in_a_file(tmp_path: Path) -> None:
    values = {"host": "gpu01", "engines": {"a": 4711}}
    assert _plan(*read_plan(json.dumps(values))) == _load(tmp_path, values)
    with pytest.raises(ProbeError, match=r"host is '' \[--plan\]"):
        _plan(*read_plan('{"host": ""}'))


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ([], "not a JSON object"),
        ({"devices": ["md0"]}, "unknown key 'devices'"),
        ({"host": ""}, "host is ''"),
        ({"block_devices": "md0"}, "block_devices is 'md0'"),
        ({"engines": {"a": "4711"}}, "engines is"),
        ({"engines": {"a": True}}, "engines is"),
        ({"engines": {"a": 0}}, "engines is"),
        ({"metrics": {"a": "127.0.0.1:8000"}}, "metrics is"),
        ({"metrics": {"a": "http://h:port/"}}, "metrics is"),
        ({"rates_hz": {"tpu": 1}}, "rates_hz names no probe 'tpu'"),
        ({"rates_hz": {"disk": 0.0099}}, "rates_hz of disk is 0.0099"),
        ({"rates_hz": {"disk": 100.1}}, "rates_hz of disk is 100.1"),
        ({"rates_hz": {"disk": True}}, "rates_hz of disk is True"),
        ({"rates_hz": [10]}, "rates_hz is [10]"),
        ({"iostat": 1}, "iostat is 1"),
        ({"nics": "eth0"}, "nics is 'eth0'"),
    ],
)
def test_a_plan_nobody_could_record_is_refused_by_the_key_that_is_wrong(
    tmp_path: Path, values: object, complaint: str
) -> None:
    with pytest.raises(ProbeError, match="-> ") as caught:
        _load(tmp_path, values)
    assert complaint in caught.value.what


@pytest.mark.parametrize("rate", [0, 0.01, 100])
def test_a_rate_within_its_bounds_and_0_are_accepted(rate: float, tmp_path: Path) -> None:
    assert _load(tmp_path, {"rates_hz": {"disk": rate}}).rates_hz["disk"] == rate


def test_a_plan_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="cannot read the plan"):
        read_plan(str(tmp_path / "no.json"))
    (tmp_path / "torn.json").write_text('{"host": "a"', encoding="ascii")
    with pytest.raises(ProbeError, match="the plan is not JSON"):
        read_plan(str(tmp_path / "torn.json"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["record", "--plan", '{"rates_hz": {"disk": "fast"}}'],
        ["record", "--plan", "{torn"],
        ["environment"],
        ["residency", "--dir", "/nothing/here", "--moment", "now"],
        ["evict", "--dir", "/nothing/here"],
        ["topology", "--path", "/nothing/here"],
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_code_4(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert " -> " in output.err


def test_evict_and_residency_and_topology_speak_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kv = tmp_path / "kv"
    kv.mkdir()
    (kv / "a.pt").write_bytes(b"x" * 5000)
    assert main(["evict", "--dir", str(kv)]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 1
    out = tmp_path / "residency.jsonl"
    for moment in ("one", "two"):
        assert main(["residency", "--dir", str(kv), "--moment", moment, "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["moment"] for row in rows] == ["one", "two"]
    assert list(rows[0]) == [
        *("moment", "host", "path", "size_bytes", "resident_bytes", "device", "method"),
        *("self_test", "reason", "mono_ns"),
    ]
    capsys.readouterr()
    assert main(["topology", "--path", str(kv)]) == 0
    place = json.loads(capsys.readouterr().out)
    assert {"st_dev", "mount", "fstype", "device", "kind", "members", "diskseq"} <= set(place)


def test_status_names_every_probe_and_gives_each_a_reason_or_a_yes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["status", "--json", "--dir", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    names = [probe.name for probe in PROBES]
    assert [row["probe"] for row in rows] == [*names, "iostat", "residency"]
    assert all(row["works"] in {"yes", "no", "partly", "-"} and row["detail"] for row in rows)
    assert main(["status", "--metrics", "http://127.0.0.1:1/metrics", "--dir", "/nothing"]) == 0
    table = capsys.readouterr().out
    assert "engine     no      failed: ConnectionRefusedError" in table
    assert "residency  no" in table
    assert Path("/nothing").exists() is False
