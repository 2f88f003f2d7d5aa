"""Compile requirements/*.in to *.txt, every version pinned by hash: ``make requirements``.

``policy.txt``, ``tensorboard.txt`` and ``bigquery.txt`` are parts of packages: ``vt`` installs what
they name.

The results name no registry, machine or folder: the configuration of the installer does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

OLDEST_PYTHON: Final = "3.11"
HEADER: Final = "# Compiled from {name}.in by `make requirements`; do not edit.\n"
#: What is compiled -> the projects whose dependencies are in it, beside its own file. The order
#: counts: dev is constrained by the versions of runtime.
SOURCES: Final = {
    "runtime": ("../pyproject.toml",),
    "dev": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "lowest": ("../pyproject.toml", "../localcloud/pyproject.toml"),
    "policy": (),
    "tensorboard": (),
    "bigquery": (),
}

#: Ours, of no index: `make setup` installs it from the checkout.
OURS: Final = "localgcp"

FOLDER: Final = Path(__file__).resolve().parents[1] / "requirements"
#: Where results go that are not beside their source, from there.
ELSEWHERE: Final = {
    stem: f"../cli/vertex_training_cli/toolchain/{stem}.txt" for stem in ("policy", "tensorboard")
} | {"bigquery": "../localcloud/localgcp/bigquery/packages.txt"}

COMMAND: Final = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
    *("--python-version", OLDEST_PYTHON, "--no-emit-index-url", "--no-emit-find-links"),
    *("--no-header", "--annotation-style", "line"),
)


def main() -> int:
    """Compile all files; with ``--upgrade``, to the newest versions. Returns uv's exit code."""
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    for stem, projects in SOURCES.items():
        name = ELSEWHERE.get(stem, f"{stem}.txt")
        target = (FOLDER / name).resolve()
        # uv reads the old result to keep its versions, and annotates with the paths it is given.
        # The oldest versions are those of the oldest Python: newer ones need newer packages.
        options = [each for each in COMMAND if stem != "lowest" or each != "--universal"]
        command = [*options, *upgrade, f"{stem}.in", *projects, "--output-file", name]
        command += ["--extra", "cli"] if projects else []
        command += ["--resolution", "lowest-direct"] if stem == "lowest" else []
        command += ["--excludes", "-"]
        if code := subprocess.run(
            command, cwd=FOLDER, check=False, input=OURS, text=True
        ).returncode:
            return code
        target.write_text(HEADER.format(name=stem) + target.read_text())
        print(f"{target.relative_to(FOLDER.parent)}: {target.read_text().count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
