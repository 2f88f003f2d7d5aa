"""Measure the package: the wheel's size, its installation, and the import of its components.

    .venv/bin/python bench/package.py [--rounds N] [--only install|import] [--json FILE]

Prints a table, writes the figures as JSON, and exits 1 if a bound is not held:

- the wheel: its size in kB, and how many files it has
- installation by ``uv pip install`` into an empty environment, with all packages in uv's cache:
  without and with each extra; the local cloud is built beside it
- import, in fresh processes that alternate: ``vertex_training`` with all of its components
  against ``import pulumi_gcp`` alone; the difference of the medians is at most 0.6 s
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from arms import in_turns, run

ROOT: Final = Path(__file__).resolve().parents[1]
#: Seconds that the components may take over those of pulumi_gcp alone.
MAX_OVER: Final = 0.6
ALONE: Final = "import pulumi_gcp"
#: Every public name, so that each module of the components is loaded.
COMPONENTS: Final = (
    "import pulumi_gcp, vertex_training as v; [getattr(v, name) for name in v.__all__]"
)
EXTRAS: Final = ("", "[cli]", "[local]")


def build(folder: Path) -> Path:
    """The wheels of the checkout, made of a copy: a build writes into its tree."""
    copy = folder / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for tree in (copy, copy / "localcloud"):
        command = [_uv(), "build", "--quiet", "--wheel", "-o", str(folder), str(tree)]
        run(command, folder, os.environ)
    [wheel] = folder.glob("vertex_training-*.whl")
    return wheel


def installed(wheel: Path, extra: str, folder: Path) -> float:
    """Seconds of one installation into a new, empty environment."""
    target = Path(tempfile.mkdtemp(dir=folder)) / "venv"
    run([_uv(), "venv", "--quiet", "--python", sys.executable, str(target)], folder, os.environ)
    python = str(target / "bin" / "python")
    command = [_uv(), "pip", "install", "--quiet", "--python", python]
    command += ["--find-links", str(folder), f"{wheel}{extra}"]
    seconds, _ = run(command, folder, os.environ)
    shutil.rmtree(target)
    return seconds


def bench_install(folder: Path, rounds: int) -> dict[str, Any]:
    """Size of the wheel, and seconds of its installations in turns."""
    wheel = build(folder)
    with zipfile.ZipFile(wheel) as content:
        files = len(content.namelist())
    arms = {
        f"install {wheel.name.split('-')[0]}{extra}": (
            lambda extra=extra: installed(wheel, extra, folder)
        )
        for extra in EXTRAS
    }
    times = in_turns(arms, rounds, warm_up=1)  # the first fills uv's cache
    return {"wheel_kb": round(wheel.stat().st_size / 1000), "files": files, "seconds": times}


def bench_import(folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds of both imports in turns, each in a process of its own."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    arms = {
        name: (lambda code=code: run([sys.executable, "-c", code], folder, env)[0])
        for name, code in (("import components", COMPONENTS), ("import pulumi_gcp", ALONE))
    }
    return {"seconds": in_turns(arms, rounds, warm_up=1)}


def show(found: dict[str, dict[str, Any]]) -> bool:
    """Print the table; whether the bound is held."""
    if "install" in found:
        print(f"wheel: {found['install']['wheel_kb']:,} kB, {found['install']['files']:,} files")
    print(f"{'':34} median   fastest  slowest")
    medians: dict[str, float] = {}
    for part in found.values():
        for name, taken in part["seconds"].items():
            medians[name] = statistics.median(taken)
            print(f"{name:34} {medians[name]:6.2f} s {min(taken):6.2f} s {max(taken):6.2f} s")
    if "import" not in found:
        return True
    over = medians["import components"] - medians["import pulumi_gcp"]
    found["import"]["over"] = round(over, 3)
    print(f"components over pulumi_gcp alone   {over:6.2f} s (at most {MAX_OVER:.2f} s)")
    return over <= MAX_OVER


def _uv() -> str:
    found = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not Path(found).is_file():
        sys.exit("bench/package.py: uv is not on PATH. Hint: pip install uv")
    return found


def main() -> int:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="repetitions of each measurement")
    parser.add_argument("--only", choices=("install", "import"), help="one of the two parts")
    parser.add_argument("--json", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.machine()}")
    parts = {"install": bench_install, "import": bench_import}
    folder = Path(tempfile.mkdtemp(prefix="bench-package-"))
    try:
        wanted = {name: part for name, part in parts.items() if chosen.only in (None, name)}
        found = {name: part(folder, chosen.rounds) for name, part in wanted.items()}
    finally:
        shutil.rmtree(folder)
    held = show(found)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
