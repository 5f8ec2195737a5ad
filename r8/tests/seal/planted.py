"""Sixty names and secrets of twelve kinds, planted everywhere a run keeps text; all made up.

Each is a phrase as a machine would write it, and the needle in it that must not be found again.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import edit_rows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from r8.evidence.reader import Evidence

# Kind: phrases. The needle is the phrase, or what stands between « and ».
PLANTED: dict[str, tuple[str, ...]] = {
    "host": (
        *("gpu07", "kvstore-a1.corp.example", "login3.cluster", "array-mgmt.acme.lan"),
        "ip-10-20-30-40.eu-west-1.compute.internal",
    ),
    "user": (
        *("/home/«alice»/model", "/home/«m.keller»/.cache", "user=«svc_kvbench»"),
        *("«bjorn»@filer", "uid=1004(«jdoe42»)"),
    ),
    "ipv4": (
        *("192.0.2.17", "traddr=«198.51.100.9»,trsvcid=4420", "http://«203.0.113.5»:8000/v1"),
        *("peer «10.11.12.13»:4420", "nfs addr=«172.16.5.44»"),
    ),
    "ipv6": (
        *("2001:db8::7", "[«2001:db8:1::8»]:4420", "traddr=«fd00:10:20::5» trsvcid=4420"),
        *("2001:db8:0:1:2:3:4:5", "«fe80::1ff:fe23:4567:890a»%eth0"),
    ),
    "mac": (
        *("02:42:ac:11:00:02", "0c-42-a1-5e-00-1f", "node_guid: «506b:4b03:00c2:f1a8»"),
        *("ether «b8:59:9f:a0:0b:1c» txqueuelen 1000", "sys_image_guid 0x«506b4b0300c2f1a9»"),
    ),
    "nqn": (
        "hostnqn=«nqn.2014-08.org.nvmexpress:uuid:6b9b6b2e-3c1f-11ee-9c0a-0c42a15e001f»",
        *("nqn.2020-05.com.acme:array7", "iqn.1994-05.com.redhat:9ab1c2d3e4f5"),
        *("subnqn=«nqn.1988-11.com.dell:powerstore:00:ab12cd»", "nqn.2010-06.com.pure:flash.1f2e"),
    ),
    "serial": (
        *("serial: «S5XNNE0R912345»", "PHLJ812300BV4P0DGN", "eui.0025385b71b0c2aa"),
        *("wwn-0x5000cca2b1c0ffee", "serial_number=«210235980001234»"),
    ),
    "uuid": (
        *("GPU-3f1c2a9e-77aa-4bd1-9e1b-2c6d8f90ab12", "8d1f2c3b-4a5e-4f60-9182-a3b4c5d6e7f8"),
        *("MIG-1a2b3c4d-5e6f-5a7b-8c9d-0e1f2a3b4c5d", "nguid=«e8238fa6bf530001001b448b46f5f0aa»"),
        "docker-«1f9e3c5a7b2d4e6f8091a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3».scope",
    ),
    "infiniband": (
        *("GID[0]: «fe80:0000:0000:0000:506b:4b03:00c2:f1aa»", "base lid: «0x1f3a»"),
        *("::ffff:10.11.12.14", "pkey=«0x8012»", "port_guid:«0x506b4b0300c2f1ab»"),
    ),
    "path": (
        *("filer9:/export/kv7", "/data/«acme-llm-70b-private»/weights", "s3://«acme-kv-bucket»/p"),
        *("/mnt/«acme-lustre»/models", "//«smb-acme»/share"),
    ),
    "token": (
        *("hf_AbCdEfGhIjKlMnOpQrStUv12", "AKIAIOSFODNN7EXAMPLE", "GOOG1EXAMPLEKEY4ABCDEFGH"),
        "sk-proj-9fA7c2LmQ4vX8zT1bR6k",
        "eyJhbGciOiJIUzI1NiJ9.«eyJzdWIiOiIxMjM0NSJ9».c2lnbmF0dXJlLXg",
    ),
    "secret": (
        *("--api-key «Vq8sXw2LpT5n»", "Authorization: Bearer «tok.Zm9vYmFyMTIz»"),
        *("https_proxy=http://proxyuser:«hunter2pass»@proxy:3128", "Cookie: sid=«c00kieM0nster»"),
        "DefaultEndpointsProtocol=https;AccountKey=«aGVsbG93b3JsZDEyMzQ1Njc4OTA==»;",
    ),
}
SECRET_KINDS = ("token", "secret")
PHRASES = {
    kind: [one.replace("«", "").replace("»", "") for one in phrases]
    for kind, phrases in PLANTED.items()
}
NEEDLES = {
    kind: [one.partition("«")[2].partition("»")[0] or one for one in phrases]
    for kind, phrases in PLANTED.items()
}


def planted_run(partial: Path) -> Evidence:
    """Plant all of them in an unfinished run of the factory, finish it and read it."""
    phrases = [phrase for kind in PHRASES.values() for phrase in kind]
    raw = partial / "raw"
    text = "".join(f"{phrase}\n" for phrase in phrases)
    log = raw / "server-a.log"
    said = "".join(f"Starting to load model {phrase}...\n" for phrase in phrases)
    log.write_text(log.read_text() + text + said)
    (raw / "probes.log").write_text(text)
    (raw / "worker-gpu07.log").write_text(text)  # a file name is a name as well
    (raw / "environment-begin.json").write_text(json.dumps({"env": phrases, "argv": phrases}))
    (raw / "site.toml").write_text("# synthetic\n" + "".join(f"# {one}\n" for one in phrases))
    (raw / "ping.txt.gz").write_bytes(gzip.compress(b"no names"))
    edit_rows(partial, "events", _in_events)
    edit_rows(partial, "probes", _in_probes)
    edit_rows(partial, "residency", _in_residency)
    edit_rows(partial, "requests", _in_requests)
    run = json.loads((partial / "run.json").read_text())
    run["note"] = " ".join(phrases)
    run["host"] |= {f"fact{number}": phrase for number, phrase in enumerate(phrases)}
    run["versions"] |= {"image": phrases[0]} | dict.fromkeys(phrases[:3], "1.0")
    (partial / "run.json").write_text(json.dumps(run))
    return read_run(finalise(partial, complete=True))


def _phrases() -> list[str]:
    return [phrase for kind in PHRASES.values() for phrase in kind]


def _in_events(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In a key R8 knows, in a key nobody knows, and as a key."""
    last = rows[-1]
    details: list[Any] = [
        *({"error": one} for one in _phrases()),
        *({"path": one, "stranger": one} for one in _phrases()),
        {"modes": dict.fromkeys(_phrases(), "write back")},
    ]
    return rows + [{**last, "name": "planted", "detail": json.dumps(detail)} for detail in details]


def _in_probes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = {**rows[0], "value": None, "probe": "topology"}
    found = list(rows)
    for number, phrase in enumerate(_phrases()):
        found += [
            {**first, "counter": "firmware", "device": f"disk{number}", "text": phrase},
            {**first, "counter": "model", "device": phrase, "text": "loop"},
            {**first, "counter": "state", "device": "c", "reason": f"failed: {phrase}"},
            {**first, "counter": f'vllm:info{{model_name="{phrase}"}}', "value": 1.0},
        ]
    return found


def _in_residency(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = {**rows[-1], "moment": "planted"}
    return rows + [{**last, "path": one, "reason": one} for one in _phrases()]


def _in_requests(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = {**rows[0], "phase": "probe", "outcome": "timeout", "output_text": None}
    return rows + [
        {**first, "request_id": f"planted-{number}", "error": one, "server_request_id": None}
        for number, one in enumerate(_phrases())
    ]


def found_in(tree: Path) -> dict[str, list[str]]:
    """Needles that stand anywhere in a tree, by kind: file names, bytes, Parquet and .gz opened."""
    parts = list(_bytes_of(tree))
    return {
        kind: left
        for kind, needles in NEEDLES.items()
        if (left := [one for one in needles if any(one.encode() in part for part in parts)])
    }


def _bytes_of(tree: Path) -> Iterable[bytes]:
    for path in sorted(tree.rglob("*")):
        yield path.relative_to(tree).as_posix().encode()
        if path.is_file():
            data = path.read_bytes()
            yield data
            if path.suffix == ".gz":
                yield gzip.decompress(data)
            if path.suffix == ".parquet":
                yield _texts(pq.read_table(path))


def _texts(table: pa.Table) -> bytes:
    words = [
        str(word)
        for column in table.columns
        if pa.types.is_string(column.type)
        for word in column.unique().to_pylist()
    ]
    return "\n".join([*words, str(table.schema.metadata)]).encode()
