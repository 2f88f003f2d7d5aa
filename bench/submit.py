"""Measure ``pulumi up`` of jobs: its time, and the bytes of state.

    .venv/bin/python bench/submit.py [--sizes 10,100] [--rounds N]

Compares ``pulumi up`` of N jobs with N trivial resources (the floor). Exits with 1 if a goal is
missed (docs/maintainers.md).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from package import in_turns

ROOT: Final = Path(__file__).resolve().parents[1]
#: Maximum bytes of state of a job. The SDK's stack trace has 1,200 of these bytes.
MAX_STATE: Final = 3200
#: Maximum ratio of the time of ``up`` to the floor, by the number of jobs.
MAX_RATIO: Final = {100: 1.0, 1000: 1.0}
#: A program with trivial resources. A dynamic provider is in a module of its own.
FLOOR: Final = """\
import json
from pathlib import Path
from pulumi.dynamic import Resource
from floor import Nothing
class Trivial(Resource, module="bench", name="Trivial"):
    def __init__(self, name):
        super().__init__(Nothing(), name, {"text": name})
for key in json.loads(Path("jobs.json").read_text()):
    Trivial(key)
"""
PROVIDER: Final = """\
from pulumi.dynamic import CreateResult, ResourceProvider
class Nothing(ResourceProvider):
    serialize_as_secret_always = False
    def create(self, props):
        return CreateResult(props["text"], props)
"""


def measure(module: Any, project: Any, size: int, rounds: int) -> dict[str, float]:
    """Measure ``pulumi up`` of ``size`` jobs: median seconds, and bytes of state per job."""
    (project.path / "floor.py").write_text(PROVIDER)
    programs = {"jobs": module.PROGRAM, "floor": FLOOR}
    states: dict[str, list[float]] = {f"{kind}: bytes": [] for kind in programs}
    numbers = itertools.count()

    def arm(kind: str) -> float:
        names = f"job-{size}-{next(numbers)}"
        seconds, state = one_up(project, programs[kind], names, size)
        states[f"{kind}: bytes"].append(state)
        return seconds

    times = in_turns({kind: functools.partial(arm, kind) for kind in programs}, rounds)
    return {what: statistics.median(taken) for what, taken in (times | states).items()}


def one_up(
    project: Any, program: str, names: str, size: int, script: str = "true"
) -> tuple[float, float]:
    """Return the seconds of a ``pulumi up``, and the bytes of state per resource."""
    saved = project.path / "empty.json"
    (project.path / "__main__.py").write_text(program)
    project.want()
    project.up()  # measures the state of an empty stack
    project.pulumi(f"stack export -s local --file {saved}")
    empty = state_bytes(project)
    # Each run has new names, because a submitted request would be adopted.
    project.want(**{f"{names}-{n}": {"script": script} for n in range(size)})
    began = time.perf_counter()
    project.up()
    seconds = time.perf_counter() - began
    state = (state_bytes(project) - empty) / size
    # Empty the stack for the next measurement, without waiting for jobs to end.
    project.pulumi(f"stack import -s local --force --file {saved}")
    return seconds, state


def state_bytes(project: Any) -> int:
    """Return the size of the state file."""
    file = project.home.pulumi / ".pulumi" / "stacks" / "only-jobs" / "local.json"
    return file.stat().st_size


def missed(size: int, row: dict[str, float]) -> list[str]:
    """Print the results of :func:`measure`, and return the missed goals."""
    ratio = row["jobs"] / row["floor"]
    print(
        f"{size:5} jobs: up {row['jobs']:.1f} s, floor {row['floor']:.1f} s, ratio {ratio:.2f}; "
        f"state {row['jobs: bytes']:.0f} bytes per job, floor {row['floor: bytes']:.0f}",
        flush=True,
    )
    lines = []
    if row["jobs: bytes"] > MAX_STATE:
        lines.append(f"{size} jobs: {row['jobs: bytes']:.0f} bytes per job, goal {MAX_STATE}")
    if ratio > MAX_RATIO.get(size, ratio):
        lines.append(f"{size} jobs: {ratio:.2f} times the floor, goal {MAX_RATIO[size]}")
    return lines


def main() -> int:
    """Parse the command line, run all measurements, and print missed goals."""
    parser = argparse.ArgumentParser(description="Measure `pulumi up` of jobs.")
    parser.add_argument("--sizes", default="10,100,300,1000")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    began = time.perf_counter()
    sys.path.insert(0, str(ROOT))
    from localgcp.runner.job import SLOTS
    from tests.e2e import only_jobs as module

    with tempfile.TemporaryDirectory() as folder, module.project(Path(folder)) as project:
        # Later jobs wait for a slot of the runner, and use no processor time.
        one_up(project, module.PROGRAM, "busy", SLOTS, "sleep 86400")
        lines = [
            line
            for size in map(int, arguments.sizes.split(","))
            for line in missed(size, measure(module, project, size, arguments.rounds))
        ]
    for line in lines:
        print(f"missed: {line}")
    minutes = (time.perf_counter() - began) / 60
    print(f"{platform.machine()}, {os.cpu_count()} cores, {minutes:.0f} minutes")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
