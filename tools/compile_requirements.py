"""Compile requirements with every version pinned by hash: ``make requirements``.

- requirements/*.in to *.txt. ``policy.txt`` and ``bigquery.txt`` are parts of packages:
  ``vt`` installs their requirements
- jobs/*/*.in to the locks that Dockerfiles install, for Python 3.11 on linux/amd64, without
  packages of the base image, and in locks for CPUs without packages for GPUs

The results name no registry, machine or folder: the installer's configuration sets them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
JOBS: Final = ROOT / "jobs"
FOLDER: Final = ROOT / "requirements"
OLDEST_PYTHON: Final = "3.11"
HEADER: Final = "# Compiled from {source} by `make requirements`; do not edit.\n"
#: Compiled file -> projects whose dependencies it includes, besides those of its .in file. The
#: order matters: the versions of runtime constrain dev.
SOURCES: Final = {
    "runtime": ("../pyproject.toml",),
    "dev": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "lowest": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "policy": (),
    "bigquery": (),
}
#: This project's package, which is on no index: `make setup` installs it from the checkout.
OURS: Final = "localgcp"
#: Paths of results in other folders than their source, relative to the source.
ELSEWHERE: Final = {
    "policy": "../cli/vertex_training_cli/toolchain/policy.txt",
    "bigquery": "../localcloud/localgcp/bigquery/packages.txt",
}
#: PyTorch's wheel for CPUs, with the hash from its index. This script does not query that index.
TORCH_CPU: Final = """\
torch==2.4.1+cpu \\
    --hash=sha256:2b03e20f37557d211d14e3fb3f71709325336402db132a1e0dd8b47392185baf
"""
#: Packages that only GPUs need: dependencies of PyTorch's wheels with CUDA.
_GPU: Final = re.compile(r"(nvidia|cuda)-|triton\b")
_COMMAND: Final = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header"),
    *("--python-version", OLDEST_PYTHON, "--no-emit-index-url", "--no-emit-find-links"),
)


def _as_compiled(pin: str) -> str:
    return pin


def _without_torch(pin: str) -> str:
    """Return the requirements without torch, for a base image that has PyTorch."""
    return "" if _GPU.match(pin) or pin.startswith("torch==") else pin


def _for_cpu(pin: str) -> str:
    """Return the requirements with torch for CPUs."""
    return TORCH_CPU if pin.startswith("torch==") else "" if _GPU.match(pin) else pin


#: Source below ``jobs`` -> its locks, each with its change of a pinned package. The first lock has
#: the most packages.
LOCKS: Final[Mapping[str, Mapping[str, Callable[[str], str]]]] = {
    "titanic/image.in": {"cuda.lock": _as_compiled, "cpu.lock": _for_cpu},
    "titanic/installer.in": {"installer.lock": _as_compiled},
    "titanic/serve/image.in": {"image.lock": _as_compiled},
    "spot_resume/image.in": {"image.lock": _as_compiled},
    "parameter_server/image.in": {"image.lock": _as_compiled},
    "arr_coc/image.in": {"image.lock": _without_torch},
    "gemma_finetune/image.in": {"image.lock": _without_torch},
    "transformer/image.in": {"image.lock": _as_compiled},
}


def compile_requirements(stem: str, upgrade: list[str]) -> None:
    """Compile a file of requirements/. Raises CalledProcessError."""
    projects = SOURCES[stem]
    name = ELSEWHERE.get(stem, f"{stem}.txt")
    target = (FOLDER / name).resolve()
    # uv reads the old result to keep its versions, and annotates with the paths of its arguments.
    # The oldest versions are for the oldest Python: newer Pythons need newer packages.
    command = [*_COMMAND, "--annotation-style", "line", *upgrade, f"{stem}.in", *projects]
    command += ["--resolution", "lowest-direct"] if stem == "lowest" else ["--universal"]
    command += ["--extra", "cli"] if projects else []
    command += ["--output-file", name, "--excludes", "-"]
    subprocess.run(command, cwd=FOLDER, check=True, input=OURS, text=True)
    target.write_text(HEADER.format(source=f"{stem}.in") + target.read_text())
    print(f"{target.relative_to(ROOT)}: {target.read_text().count('==')} packages")


def compile_locks(name: str, upgrade: list[str]) -> None:
    """Compile a source below jobs/ to its locks. Raises CalledProcessError."""
    source, locks = JOBS / name, LOCKS[name]
    fullest = next(iter(locks))
    keep = not upgrade and (source.parent / fullest).is_file()
    command = [*_COMMAND, "--no-annotate", "--python-platform", "x86_64-manylinux_2_28"]
    command += [*(("--constraint", fullest) if keep else ()), source.name]
    ran = subprocess.run(command, cwd=source.parent, stdout=subprocess.PIPE, text=True, check=True)
    # The pinned packages, each with the lines of its hashes.
    pins = re.findall(r"^[^\s#].*(?:\n[ \t].*)*\n?", ran.stdout, re.MULTILINE)
    for lock, change in locks.items():
        kept = list(filter(None, map(change, pins)))
        target = source.parent / lock
        target.write_text(HEADER.format(source=source.name) + "".join(kept))
        print(f"{target.relative_to(ROOT)}: {len(kept)} packages")


def main() -> int:
    """Compile all files; with ``--upgrade``, to the newest versions. Returns uv's exit code."""
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    try:
        for stem in SOURCES:
            compile_requirements(stem, upgrade)
        for name in LOCKS:
            compile_locks(name, upgrade)
    except subprocess.CalledProcessError as failed:
        return failed.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
