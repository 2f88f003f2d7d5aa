"""Compile jobs/*/*.in to the locks that Dockerfiles install: part of ``make requirements``.

Every version is pinned by hash, for Python 3.11 on linux/amd64. What a base image has already, or
a machine without a GPU has no use for, is left out. The results name no registry, machine or
folder.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

JOBS: Final = Path(__file__).resolve().parents[1] / "jobs"
HEADER: Final = "# Compiled from {source} by `make requirements`; do not edit.\n"
#: PyTorch's wheel for the CPU: its index lists this sum, and is not asked for it here.
TORCH_CPU: Final = """\
torch==2.4.1+cpu \\
    --hash=sha256:2b03e20f37557d211d14e3fb3f71709325336402db132a1e0dd8b47392185baf
"""
#: What only a GPU needs: dependencies of PyTorch's wheels with CUDA.
_GPU: Final = re.compile(r"(nvidia|cuda)-|triton\b")
_COMMAND: Final = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes"),
    *("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)


def _as_compiled(pin: str) -> str:
    return pin


def _without_torch(pin: str) -> str:
    """For a base image that has PyTorch."""
    return "" if _GPU.match(pin) or pin.startswith("torch==") else pin


def _for_cpu(pin: str) -> str:
    """For a machine without a GPU."""
    return TORCH_CPU if pin.startswith("torch==") else "" if _GPU.match(pin) else pin


#: Source below ``jobs`` -> its locks, and what each makes of a pinned package. The first lock is
#: the fullest one.
LOCKS: Final[Mapping[str, Mapping[str, Callable[[str], str]]]] = {
    "titanic/image.in": {"cuda.lock": _as_compiled, "cpu.lock": _for_cpu},
    "titanic/installer.in": {"installer.lock": _as_compiled},
    "titanic/serve/image.in": {"image.lock": _as_compiled},
    "spot_resume/image.in": {"image.lock": _as_compiled},
    "parameter_server/image.in": {"image.lock": _as_compiled},
    "arr_coc/image.in": {"image.lock": _without_torch},
    "gemma_finetune/image.in": {"image.lock": _without_torch},
}


def pins(compiled: str) -> list[str]:
    """The pinned packages of a compiled file, each with the lines of its hashes."""
    return re.findall(r"^[^\s#].*(?:\n[ \t].*)*\n?", compiled, re.MULTILINE)


def main() -> int:
    """Compile all locks; with ``--upgrade``, to the newest versions. Returns uv's exit code."""
    upgrade = "--upgrade" in sys.argv[1:]
    for name, locks in LOCKS.items():
        source = JOBS / name
        fullest = next(iter(locks))
        keep = not upgrade and (source.parent / fullest).is_file()
        command = [*_COMMAND, *(("--constraint", fullest) if keep else ()), source.name]
        ran = subprocess.run(
            command, cwd=source.parent, stdout=subprocess.PIPE, text=True, check=False
        )
        if ran.returncode:
            return ran.returncode
        for lock, change in locks.items():
            kept = list(filter(None, map(change, pins(ran.stdout))))
            text = HEADER.format(source=source.name) + "".join(kept)
            (source.parent / lock).write_text(text)
            print(f"{(source.parent / lock).relative_to(JOBS.parent)}: {len(kept)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
