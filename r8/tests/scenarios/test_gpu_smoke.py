"""`nox -s gpu-smoke` to its archive and back, with fakes on PATH: no GPU is here.

The fakes print captures, and beside them what must not travel: serials, a user, a process.
"""

from __future__ import annotations

import re
import socket
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from probes.gpu.sources import TOOLS
from probes.tool import TIMEOUT_S, ToolRun
from r8.errors import BundleError, UsageError
from r8.scenarios import gpu_smoke
from r8.scenarios.gpu_smoke import ENGINE_SCRIPT, main
from r8.scenarios.smoke_archive import Hiding, cards_of, changed, read, replaying
from r8.seal.archive import GZIP, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLES = Path(__file__).resolve().parents[3] / "probes" / "tests" / "samples"
# Archives that owners of other machines sent in; each is read by today's parsers.
SENT_IN = Path(__file__).with_name("gpu_archives")
FAKE = """\
#!{python}
import sys
words = " ".join(sys.argv[1:])
for part, text in {answers!r}:
    if part in words:
        sys.stdout.write(text)
        sys.exit(0)
sys.exit("fake: no answer to " + words)
"""
SERIAL, USER_NAME, UUID = "1322421044887", "somebody", "GPU-63259fac-e138-76b5-a59e-9fc57a9990a4"
TABLE = f"""\
| NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6     |
|   0  NVIDIA H100 80GB HBM3        On  |   00000000:17:00.0 Off |                    0 |
| Serial Number : {SERIAL}
| node name: gpu-07.cluster.example.org at 10.20.30.40
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|    0   N/A  N/A   1234      C   /home/{USER_NAME}/venv/bin/python3            4000MiB |
"""
# Stand-in for vLLM: as much of it as the engine script calls.
VLLM = """
__version__ = "0.0-standin"
class SamplingParams:
    def __init__(self, **facts):
        self.facts = facts
class LLM:
    def __init__(self, **facts):
        assert facts["load_format"] == "dummy"
        print("INFO the stand-in engine of {user} loads")
    def generate(self, prompts, sampling, use_tqdm):
        from types import SimpleNamespace as One
        answer = One(outputs=[One(token_ids=[5] * sampling.facts["max_tokens"])])
        return [answer for _ in prompts]
"""


def sample(name: str) -> str:
    return (SAMPLES / f"capture_{name}").read_text(encoding="utf-8")


@pytest.fixture(name="fakes")
def _fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH but for fakes; `fake()` puts one there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("USER", USER_NAME)
    return folder


def fake(folder: Path, tool: str, *answers: tuple[str, str]) -> None:
    path = folder / tool
    path.write_text(FAKE.format(python=sys.executable, answers=list(answers)))
    path.chmod(0o755)


def nvidia(folder: Path) -> None:
    pages = sample("nvidia_smi_lost_among_rows.txt").replace(
        "GPU-00000000-0000-0000-0000-000000000000", UUID
    )
    fake(
        folder,
        "nvidia-smi",
        ("--query-gpu", pages),
        ("-L", f"GPU 0: NVIDIA H100 (UUID: {UUID})\n"),
        ("-q", f"Serial Number : {SERIAL}\n"),
        ("", TABLE),
    )


def amd(folder: Path) -> None:
    fake(
        folder,
        "amd-smi",
        ("metric --json", sample("amd_smi_metric_ge7.0_gpu_data_dpx.json")),
        ("metric --csv", sample("amd_smi_metric_csv.csv")),
        ("list", sample("amd_smi_list_dpx.json")),
    )
    fake(folder, "rocm-smi", ("--json", sample("rocm_smi_lost_card_complains.txt")))


def smoke(out: Path, *words: str) -> int:
    return main(["--out", str(out), "--seconds", "1.5", *words])


def packed(out: Path) -> dict[str, str]:
    with tarfile.open(out) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        return {
            one.name: (archive.extractfile(one) or SimpleNamespace(read=bytes)).read().decode()
            for one in members
        }


def test_a_machine_without_gpus_gets_one_line_and_the_exit_code_of_a_site(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert smoke(tmp_path / f"x{GZIP}") == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("gpu-smoke: no GPU here: none of amdgpu, nvml, amd-smi,")
    assert not (tmp_path / f"x{GZIP}").exists()


def test_pages_cards_and_rows_come_back_out_of_the_archive(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nvidia(fakes)
    amd(fakes)
    out = tmp_path / f"smoke{GZIP}"
    assert smoke(out, "--no-engine") == 0
    made = read(out)
    cards = {one.card.device: (one.source, one.card) for one in cards_of(made.pages)}
    assert [asdict(one) for one in cards_of(made.pages)] == made.facts["cards"]
    source, card = cards["0000:3f:00.0"]
    assert (source, card.values["vram_used_bytes"]) == ("nvidia-smi", 18307 << 20)
    assert cards["0000:1e:00.0"][1].reasons["power_w"].startswith("failed: the tool says 'GPU is")
    assert cards["0000:05:00.1"][1].values["vram_used_bytes"] == 141 << 20
    assert {"0000:3f:00.0", "0000:05:00.0"} <= {row["device"] for row in made.rows}
    assert made.facts["sampled"]["disk"]["looks"] > 1
    assert made.facts["sampled"]["gpu"]["numbers"] > 0
    assert ("amd-smi", "metric", "--csv") in made.pages
    assert out.stat().st_size < 1 << 20
    capsys.readouterr()
    assert main(["--replay", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "0000:3f:00.0" in shown
    assert "other than where it was made" not in shown


def test_nothing_of_the_machine_or_its_people_travels(fakes: Path, tmp_path: Path) -> None:
    nvidia(fakes)
    out = tmp_path / f"smoke{GZIP}"
    assert smoke(out, "--no-engine") == 0
    texts = "\n".join(packed(out).values())
    host = re.compile(rf"(?<![\w-]){re.escape(socket.gethostname())}(?![\w-])")
    assert host.search(texts) is None
    for name in (SERIAL, USER_NAME, UUID, "cluster.example", "10.20.30.40"):
        assert name not in texts, name
    assert "4000MiB" not in texts
    assert "Driver Version: 560.35.03" in texts
    assert read(out).facts["hidden"] > 0


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("capture_*_smi_*")), ids=lambda one: one.name)
def test_hiding_changes_nothing_a_parser_reads(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    hidden = Hiding().text(text)
    (tool,) = (one for one in TOOLS if f"_{one.name.replace('-', '_')}_" in path.name)
    assert tool.page(hidden).cards == tool.page(text).cards
    if tool.names:
        assert tool.names.parse(hidden) == tool.names.parse(text)


def test_a_tiny_engine_runs_where_vllm_can_be_imported(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia(fakes)
    (tmp_path / "vllm.py").write_text(VLLM.replace("{user}", f"/home/{USER_NAME}"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = tmp_path / f"smoke{GZIP}"
    assert smoke(out, "--engine", f"{fakes}/python3") == 0
    engine = read(out).facts["engine"]
    assert (engine["vllm"], engine["prompts"], engine["output_tokens"]) == (
        "0.0-standin",
        8,
        8 * 64,
    )
    log = packed(out)["r8-bundle/engine.log"]
    assert "the stand-in engine of" in log
    assert USER_NAME not in log


@pytest.mark.parametrize(
    ("vllm", "reason"),
    [
        ("raise ImportError('no torch')", "absent: no vLLM (ImportError: no torch)"),
        ("__version__ = '0'", "failed: it ended with code 1"),
    ],
)
def test_without_an_engine_the_reason_is_in_the_archive(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vllm: str, reason: str
) -> None:
    nvidia(fakes)
    (tmp_path / "vllm.py").write_text(vllm)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = tmp_path / f"smoke{GZIP}"
    assert smoke(out) == 0
    assert read(out).facts["engine"] == {"reason": reason}


def test_a_tool_that_shows_no_card_is_worth_its_page(fakes: Path, tmp_path: Path) -> None:
    broken = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    fake(fakes, "nvidia-smi", ("", broken))
    out = tmp_path / f"smoke{GZIP}"
    assert smoke(out, "--no-engine") == 0
    made = read(out)
    assert made.facts["cards"] == []
    assert any(run.stdout == broken for run in made.pages.values())


def test_the_steps_together_stay_below_ten_minutes() -> None:
    at_most = gpu_smoke.PAGES_S + max(gpu_smoke.RECORD_S, gpu_smoke.IMPORT_S + gpu_smoke.ENGINE_S)
    # Looking for cards first asks each tool once; only a hung driver takes its whole timeout.
    assert at_most + gpu_smoke.STOP_S + len(TOOLS) * TIMEOUT_S < 600


def test_a_round_of_pages_ends_when_its_time_is_used_up() -> None:
    found: list[ToolRun] = []
    times = iter((0.0, 1.0, 11.0))
    run = gpu_smoke._within(10.0, found, lambda: next(times))
    assert run(("true",)).returncode == 0
    assert run(("true",)).reason == "failed: no time left"
    assert len(found) == 2


def test_another_archive_and_a_torn_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").write_text("{}")
    other = tmp_path / f"other{GZIP}"
    pack(tmp_path, ["other"], other, GZIP)
    with pytest.raises(UsageError, match="not an archive of gpu-smoke"):
        read(other)
    torn = tmp_path / f"torn{GZIP}"
    torn.write_bytes(other.read_bytes()[:-9])
    with pytest.raises(BundleError):
        read(torn)
    assert main(["--replay", str(other)]) == 4
    assert main(["--out", str(other)]) == 4
    assert "takes a new" in capsys.readouterr().err


def test_a_command_that_an_archive_lacks_is_absent() -> None:
    run = replaying({("nvidia-smi",): ToolRun(argv=("nvidia-smi",), stdout="x")})
    assert run(("nvidia-smi",)).stdout == "x"
    assert run(("amd-smi",)).reason == "absent: not in this archive"


def test_the_engine_script_is_plain_python() -> None:
    compile(ENGINE_SCRIPT.read_text(), "engine", "exec")


def sent_in() -> Sequence[Path]:
    return sorted(SENT_IN.glob(f"*{GZIP}"))


@pytest.mark.parametrize("path", sent_in(), ids=lambda one: one.name)
def test_an_archive_that_was_sent_in_gives_the_numbers_it_gave_there(path: Path) -> None:
    made = read(path)
    assert made.facts["cards"]
    assert changed(made) == []


def test_a_number_that_todays_parsers_lose_or_change_is_named() -> None:
    made = read(SENT_IN / f"fakes-nvidia-amd{GZIP}")
    first, second, *_ = made.facts["cards"]
    first["card"]["values"]["power_w"] = 141
    second["card"]["device"] = "0000:99:00.0"
    assert changed(made) == [
        "0000:05:00.0 power_w: 141 then, 140 now",
        "0000:99:00.0 vram_total_bytes: 103070826496 then, None now",
        "0000:99:00.0 vram_used_bytes: 147849216 then, None now",
    ]
