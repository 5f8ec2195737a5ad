"""`r8 seal`, `r8 verify` and `r8 keygen`: evidence that leaves the machine it was made on."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from r8.claims.reader import load_claims
from r8.cli.run_arguments import add_runs, evidences
from r8.console import line, page, print_json, table
from r8.errors import UsageError
from r8.evidence.door import home
from r8.message import Answer
from r8.report.words import render_reasons
from r8.seal import keys
from r8.seal.bundle import seal
from r8.seal.verify import exit_code, verify

if TYPE_CHECKING:
    import argparse


# A step that was not reached, or whose evidence was withheld, is no pass.
_WORDS = {Answer.HELD: "PASS", Answer.REFUTED: "FAIL", Answer.UNKNOWN: "UNKNOWN"}


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `seal`, `verify` and `keygen`."""
    verb = subparsers.add_parser("seal", help="one signed archive of runs and what they say")
    add_runs(verb)
    verb.add_argument("-o", "--out", type=Path, required=True, help="*.tar.zst or *.tar.gz")
    verb.add_argument("--key", type=Path, help="private key (`r8 keygen`, or an ssh key)")
    words = "kind of the key (default: ed25519, a PEM file)"
    verb.add_argument("--sign-with", choices=("ed25519", "ssh-key"), default="ed25519", help=words)
    verb.add_argument("--unsigned", action="store_true", help="no signature; verify will say so")
    words = "keep declared columns alone, names as pseudonyms, no file of raw/"
    verb.add_argument("--redact", action="store_true", help=words)
    words = "a further word to replace; implies --redact"
    verb.add_argument("--redact-also", action="append", default=[], metavar="WORD", help=words)
    words = "reference runs the verdicts shall use; they go into the bundle"
    verb.add_argument("--reference", type=Path, action="append", metavar="DIR", help=words)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_seal)

    verb = subparsers.add_parser("verify", help="is a bundle whole, signed, and true to its rows?")
    verb.add_argument("bundle", type=Path, metavar="BUNDLE")
    verb.add_argument("--key", type=Path, help="public key of who should have sealed it")
    words = "accept a bundle that nobody signed"
    verb.add_argument("--unsafe-unsigned", action="store_true", help=words)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_verify)

    verb = subparsers.add_parser("keygen", help="a new Ed25519 key pair: FILE and FILE.pub")
    verb.add_argument("file", type=Path, metavar="FILE")
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_keygen)


def _seal(args: argparse.Namespace) -> int:
    if bool(args.key) == args.unsigned:
        raise UsageError(
            "a seal needs a key" if not args.key else "--key and --unsigned exclude each other",
            where="r8 seal",
            next_step="make a key with `r8 keygen FILE`, or say --unsigned",
        )
    runs = evidences(args.runs)
    signing = None
    if args.key:
        signing = keys.signing_key(args.key, with_ssh=args.sign_with == "ssh-key")
    out = seal(
        runs,
        load_claims(),
        args.out,
        signing,
        references=evidences(args.reference) if args.reference else (),
        redacted=args.redact or bool(args.redact_also),
        also=args.redact_also,
    )
    size_bytes = out.stat().st_size
    if args.json:
        print_json({"bundle": str(out), "runs": len(runs), "size_bytes": size_bytes})
    else:
        line(f"sealed {len(runs)} runs into {out} ({size_bytes} bytes)")
    return 0


def _verify(args: argparse.Namespace) -> int:
    if not args.bundle.exists():
        raise UsageError("no such bundle", where=str(args.bundle), next_step="check the path")
    key = keys.public_key(args.key) if args.key else None
    with tempfile.TemporaryDirectory(prefix="verify-", dir=home()) as folder:
        steps = verify(
            args.bundle,
            Path(folder),
            load_claims(),
            keys.verifies,
            key=key,
            unsigned_allowed=args.unsafe_unsigned,
        )
    code = exit_code(steps)
    if args.json:
        print_json({"exit_code": code, "steps": [dataclasses.asdict(one) for one in steps]})
        return code
    rows = [[_WORDS[one.answer], one.name, render_reasons(one.reasons)] for one in steps]
    page(table(rows, []))
    unknown = [one.name for one in steps if one.answer is Answer.UNKNOWN]
    verified = f"verified, but for {', '.join(unknown)}" if unknown else "verified"
    line(f"{args.bundle.name}: {'REFUSED' if code else verified}; exit code {code}")
    return code


def _keygen(args: argparse.Namespace) -> int:
    public = keys.make_ed25519(args.file)
    if args.json:
        print_json({"private": str(args.file), "public": str(public)})
    else:
        line(f"private key {args.file} (keep it), public key {public} (give it away)")
        if any((folder / ".git").exists() for folder in args.file.absolute().parents):
            line("git looks after this folder: move the private key out of it, or ignore it")
    return 0
