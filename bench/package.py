"""Measure the package: wheel size, installation time, and import time of its components.

    .venv/bin/python bench/package.py [--rounds N]

Prints a table, and exits with 1 if a limit is exceeded. Packages are in uv's cache, and sizes
include bytecode (docs/maintainers.md#size). The import of all components is compared with ``import
pulumi_gcp``, in fresh processes that alternate.

Other benchmarks use functions of this module to run commands alternately, and to compare the
medians of the durations.
"""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Maximum additional seconds for importing the components.
MAX_OVER: Final = 0.6
#: Limits of an installation without extras: packages, and MB with bytecode.
MAX_PACKAGES: Final = 60
MAX_MB: Final = 450
ALONE: Final = "import pulumi_gcp"
#: Program that loads all modules of the components.
COMPONENTS: Final = (
    "import pulumi_gcp, vertex_training as v; [getattr(v, name) for name in v.__all__]"
)
EXTRAS: Final = ("", "[cli]", "[local]")
#: Packages that every program for Vertex AI with Pulumi needs.
FOUR: Final = ("pulumi", "pulumi-gcp", "google-cloud-aiplatform", "pyyaml")


def build(folder: Path) -> Path:
    """Build the files of a release, and return the wheel of this package."""
    sys.path.insert(0, str(ROOT))
    from tools import release

    release.build(ROOT, folder)
    [wheel] = folder.glob("vertex_training-*.whl")
    return wheel


def install(folder: Path, *what: str, after: Path | None = None) -> tuple[float, Path]:
    """Return the seconds and the environment of an installation, on a copy of ``after``."""
    target = Path(tempfile.mkdtemp(dir=folder)) / "venv"
    if after is None:
        run([_uv(), "venv", "--quiet", "--python", sys.executable, str(target)], folder, os.environ)
    else:
        shutil.copytree(after, target, symlinks=True, copy_function=os.link)
    command = [_uv(), "pip", "install", "--quiet", "--python", str(target / "bin" / "python")]
    seconds, _ = run([*command, "--find-links", str(folder), *what], folder, os.environ)
    return seconds, target


def installed(folder: Path, *what: str) -> float:
    """Return the seconds of an installation, and remove the installation."""
    seconds, target = install(folder, *what)
    shutil.rmtree(target)
    return seconds


def measure_sizes(folder: Path, wheel: Path) -> dict[str, tuple[int, int, list[str]]]:
    """Return packages, MB with bytecode and the largest folders of each installation."""
    # Each installation begins with a copy of a smaller installation and its bytecode.
    _, bare = install(folder, *FOUR)
    sizes = {"the four alone": _size(bare)}
    for extra in EXTRAS:
        _, target = install(folder, f"{wheel}{extra}", after=bare)
        sizes[f"vertex_training{extra}"] = _size(target)
        bare = bare if extra else target
    return sizes


def _size(environment: Path) -> tuple[int, int, list[str]]:
    [packages] = environment.glob("lib/python*/site-packages")
    compileall.compile_dir(packages, quiet=2, workers=0)
    count = len(list(packages.glob("*.dist-info")))
    folders = {path.name: _bytes(path) for path in packages.iterdir() if path.is_dir()}
    largest = sorted(folders, key=folders.__getitem__, reverse=True)[:5]
    shown = [f"{name} {folders[name] / 1e6:.0f}" for name in largest]
    return count, round(_bytes(environment) / 1e6), shown


def _bytes(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())


def bench_install(folder: Path, rounds: int) -> tuple[dict[str, list[float]], bool]:
    """Print sizes. Return seconds of installations, in turns, and True if no limit is exceeded."""
    wheel = build(folder)
    with zipfile.ZipFile(wheel) as content:
        files = len(content.namelist())
    arms = {
        f"install {wheel.name.split('-')[0]}{extra}": (
            lambda extra=extra: installed(folder, f"{wheel}{extra}")
        )
        for extra in EXTRAS
    }
    times = in_turns(arms, rounds, warm_up=1)  # the first round fills uv's cache
    print(f"wheel: {round(wheel.stat().st_size / 1000):,} kB, {files:,} files")
    sizes = measure_sizes(folder, wheel)
    for name, (count, megabytes, largest) in sizes.items():
        print(f"{name:34} {count:3} packages {megabytes:4} MB: {', '.join(largest)}")
    print(f"limits without extras: {MAX_PACKAGES} packages, {MAX_MB} MB")
    count, megabytes, _ = sizes["vertex_training"]
    return times, count <= MAX_PACKAGES and megabytes <= MAX_MB


def bench_import(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of both imports in turns, each in a separate process."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    arms = {
        name: (lambda code=code: run([sys.executable, "-c", code], folder, env)[0])
        for name, code in (("import components", COMPONENTS), ("import pulumi_gcp", ALONE))
    }
    return in_turns(arms, rounds, warm_up=1)


def _uv() -> str:
    program = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not Path(program).is_file():
        sys.exit("bench/package.py: uv is not on PATH. Hint: run `pip install uv`")
    return program


def main() -> int:
    """Parse the command line, and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="repetitions of each measurement")
    rounds = parser.parse_args().rounds
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="bench-package-") as folder:
        installs, held = bench_install(Path(folder), rounds)
        imports = bench_import(Path(folder), rounds)
    print(f"{'':34} median   fastest  slowest")
    medians: dict[str, float] = {}
    for name, taken in (installs | imports).items():
        medians[name] = statistics.median(taken)
        print(f"{name:34} {medians[name]:6.2f} s {min(taken):6.2f} s {max(taken):6.2f} s")
    over = medians["import components"] - medians["import pulumi_gcp"]
    print(f"components minus pulumi_gcp alone {over:6.2f} s (at most {MAX_OVER:.2f} s)")
    return 0 if held and over <= MAX_OVER else 1


def run(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[float, str]:
    """Return the seconds and the output of a command. A failure ends the benchmark."""
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(
            f"{' '.join(command[:4])} ended with exit code {done.returncode}:\n"
            f"{done.stdout[-3000:]}"
        )
    return time.perf_counter() - start, done.stdout


def in_turns(
    arms: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 0
) -> dict[str, list[float]]:
    """Return the seconds of each command by round. The order alternates from round to round.

    The first ``warm_up`` rounds do not count, unless ``rounds`` is 1.
    """
    warm_up = warm_up if rounds > 1 else 0
    times: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(warm_up + rounds):
        for name in sorted(arms, reverse=turn % 2 == 1):
            seconds = arms[name]()
            if turn >= warm_up:
                times[name].append(seconds)
    return times


def ratio(times: Mapping[str, Sequence[float]], of: str, over: str, at_most: float) -> bool:
    """Print the measurements. Return True if the ratio of the medians is at most ``at_most``."""
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        shown = " ".join(f"{seconds:.2f}" for seconds in taken)
        print(f"{name}: median {medians[name]:.2f} s ({shown})")
    print(f"ratio of the fastest {min(times[of]) / min(times[over]):.3f}")
    quotient = medians[of] / medians[over]
    print(f"ratio of the medians {quotient:.3f} (at most {at_most:.2f})")
    return quotient <= at_most


if __name__ == "__main__":
    sys.exit(main())
