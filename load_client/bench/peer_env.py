"""The peers' own environment: made when asked for, never the one R8 runs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = ("aiohttp==3.14.5", "aiperf==0.13.0", "pandas")


def install_peers(environment: Path) -> list[str]:
    """Make the environment; returns what could not be had, each with its reason."""
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    missing: list[str] = []
    for peer in PEERS:
        words = [str(python), "-m", "pip", "install", "-q", peer]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
            missing.append(f"{peer}: {reason[0]}")
    if not (environment / "tokenizer").is_dir():
        words = [str(python), str(HERE / "tokenizer_maker.py"), str(environment / "tokenizer")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            missing.append(f"a tokenizer for the peers: {done.stderr.strip()[-200:]}")
    return missing
