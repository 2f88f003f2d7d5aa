"""Compile requirements with every version pinned by hash: ``make requirements``.

Compiles requirements/*.in to *.txt, and jobs/*/*.in to the locks that Dockerfiles install. The
locks are for Python 3.11 on linux/amd64, without packages of the base image. Results contain no
address of a registry: the installer's configuration has the address.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
JOBS: Final = ROOT / "jobs"
FOLDER: Final = ROOT / "requirements"
OLDEST_PYTHON: Final = "3.11"
HEADER: Final = "# Compiled from {source} by `make requirements`; do not edit.\n"
#: Compiled files, and the projects whose dependencies each file also includes. The order matters,
#: because the versions of runtime constrain the versions of dev.
SOURCES: Final = {
    "runtime": ("../pyproject.toml",),
    "dev": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "lowest": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "policy": (),
    "bigquery": (),
}
#: This project's package. No index has the package: `make setup` installs it from the checkout.
OURS: Final = "localgcp"
#: Paths of results that are in another folder than their source, relative to the source. ``vt``
#: installs these requirements.
ELSEWHERE: Final = {
    "policy": "../cli/vertex_training_cli/toolchain/policy.txt",
    "bigquery": "../localcloud/localgcp/bigquery/packages.txt",
}
#: PyTorch's wheel for CPUs, with the hash from the index of PyTorch, which is not queried here.
TORCH_CPU: Final = """\
torch==2.4.1+cpu \\
    --hash=sha256:2b03e20f37557d211d14e3fb3f71709325336402db132a1e0dd8b47392185baf
"""
#: Packages that only GPUs need, which are dependencies of PyTorch's wheels with CUDA.
_GPU: Final = re.compile(r"(nvidia|cuda)-|triton\b")
_COMMAND: Final = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header"),
    *("--python-version", OLDEST_PYTHON, "--no-emit-index-url", "--no-emit-find-links"),
)


#: Sources below ``jobs`` with their locks. The value of a lock replaces torch and its packages for
#: GPUs; None keeps these packages. A base image with PyTorch needs no torch. The first lock has all
#: packages.
LOCKS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "titanic/image.in": {"cuda.lock": None, "cpu.lock": TORCH_CPU},
    "titanic/installer.in": {"installer.lock": None},
    "titanic/serve/image.in": {"image.lock": None},
    "spot_resume/image.in": {"image.lock": None},
    "parameter_server/image.in": {"image.lock": None},
    "arr_coc/image.in": {"image.lock": ""},
    "gemma_finetune/image.in": {"image.lock": ""},
    "transformer/image.in": {"image.lock": None},
}


def compile_requirements(stem: str, upgrade: list[str]) -> None:
    """Compile a file of requirements/. Raises CalledProcessError."""
    projects = SOURCES[stem]
    name = ELSEWHERE.get(stem, f"{stem}.txt")
    target = (FOLDER / name).resolve()
    # uv keeps the versions of the old result. The oldest versions are only for the oldest Python.
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
    for lock, torch in locks.items():
        kept = pins
        if torch is not None:
            kept = [torch if pin.startswith("torch==") else pin for pin in pins]
            kept = [pin for pin in kept if pin and not _GPU.match(pin)]
        target = source.parent / lock
        target.write_text(HEADER.format(source=source.name) + "".join(kept))
        print(f"{target.relative_to(ROOT)}: {len(kept)} packages")


def main() -> int:
    """Compile all files; with ``--upgrade``, to the newest versions. Return uv's exit code."""
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
