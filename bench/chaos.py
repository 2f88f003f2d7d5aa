"""Test that a submission survives kills, faults and races: ``make chaos``, QUICK=1 for a sample.

Kills, faults and races with the real CLI and the real clients on two local clouds, a state machine
and mutants of the protocol in memory. Prints a table, writes a JSON, and ends with exit code 1 if
anything was submitted twice, lost or survived that should not have.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos import campaign, matrix, points, races, trial
from tests.chaos.arena import Arena
from tests.chaos.machine import run_machine
from tests.chaos.mutation import run_mutants, sample
from tests.chaos.ways import WAYS
from tests.containers import build_kills
from vertex_training.infra.customjob.kinds import TUNING_JOB
from vertex_training.localcloud.containers import mirror
from vertex_training.localcloud.containers.registry import find_program

ARENAS: Final = 2
QUICK_POINTS: Final = {"F1": "kill CLI", "F3": "kill CLI", "F5": "kill provider", "F7": "kill CLI",
                "F8": "kill provider", "F11": "kill CLI", "F12": "interrupt twice",
                "F19": "kill CLI"}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """The number of trials of each part."""

    kills: int
    steps: int
    runners: tuple[int, ...]
    tuning_kills: int
    tuning_steps: int
    quick: bool


FULL: Final = Size(1000, 100_000, (2, 3, 4, 6, 8), 120, 60_000, quick=False)
QUICK: Final = Size(12, 5_000, (2,), 4, 2_000, quick=True)


@dataclass
class Report:
    """Printed and written results: rows of (what, figure), problems, and details."""

    seed: int
    rows: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, figure: str, problems: Iterable[str], detail: Any) -> None:
        """Add and print the result of one part."""
        self.rows.append((what, figure))
        self.problems += [f"{what}: {problem}" for problem in problems]
        self.details[what] = detail
        print(f"{what:28} {figure}", flush=True)


def main() -> int:
    """Run all parts. Exit codes: 0 no problem, 1 at least one."""
    options = _options()
    size = QUICK if options.quick else FULL
    report, began = Report(options.seed), time.monotonic()
    print(f"seed {report.seed}: repeat with SEED={report.seed}", flush=True)
    _in_memory(report, size)
    # Spawned, not forked: gRPC does not survive a fork.
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        ProcessPoolExecutor(ARENAS, context) as pool,
    ):
        shares = [(Path(folder), number, report.seed, size) for number in range(ARENAS)]
        found = list(pool.map(_with_cli, shares))
    _add_points(report, [outcome for share in found for outcome in share["points"]])
    _add_faults(report, [met for share in found for met in share["faults"]])
    _add_races(report, [race for share in found for race in share["races"]])
    _add_kills(report, [share["kills"] for share in found])
    _add_kills(report, [share["tuning"] for share in found], "kills with tuning jobs")
    _add_builds(report, size)
    report.add("minutes", f"{(time.monotonic() - began) / 60:.1f}", (), None)
    options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
    for problem in report.problems:
        print(f"PROBLEM {problem}", file=sys.stderr)
    return 1 if report.problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a sample, in minutes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--json", type=Path, default=Path("chaos.json"))
    return parser.parse_args()


def _in_memory(report: Report, size: Size) -> None:
    walked = run_machine(size.steps, report.seed)
    figure = f"{walked.steps:,} in {walked.examples:,} examples"
    report.add("state machine steps", figure, walked.violations, asdict(walked))
    walked = run_machine(size.tuning_steps, report.seed, TUNING_JOB)
    figure = f"{walked.steps:,} in {walked.examples:,} examples"
    report.add("  of tuning jobs", figure, walked.violations, asdict(walked))
    results = run_mutants(names=sample(6, report.seed) if size.quick else ())
    alive = [result.name for result in results if not result.killed]
    figure = f"{len(results) - len(alive)}/{len(results)} killed"
    report.add("mutants of the protocol", figure, alive, [asdict(result) for result in results])


def _with_cli(share: tuple[Path, int, int, Size]) -> dict[str, Any]:
    """Every ARENAS-th trial of each kind, in a cloud of its own."""
    folder, number, seed, size = share

    def mine(of: Iterable[Any]) -> list[Any]:
        return list(of)[number::ARENAS]

    with Arena(folder / f"arena-{number}") as arena:
        outcomes = [
            trial.run(arena, point, way, f"p{number}x{index}x:1:1")
            for index, (point, way) in enumerate(mine(_trials(size)))
        ]
        faults = list(matrix.faults())
        chosen = faults if not size.quick else random.Random(seed).sample(faults, 10)
        met = [
            matrix.meet(arena, given, f"m{number}x{index}")
            for index, given in enumerate(mine(chosen))
        ]
        raced = [races.race(arena, n, f"c{number}x{n}:1:1") for n in mine(size.runners)]
        kills = campaign.run(arena, size.kills // ARENAS, seed + number, _progress(number))
    with Arena(folder / f"tuning-{number}", TUNING_JOB) as arena:
        tuning = campaign.run(arena, size.tuning_kills // ARENAS, seed + number, _progress(number))
    return {
        "points": [asdict(outcome) for outcome in outcomes],
        "faults": [asdict(fault) for fault in met],
        "races": [asdict(race) for race in raced],
        "kills": asdict(kills),
        "tuning": asdict(tuning),
    }


def _trials(size: Size) -> list[tuple[trial.Point, str]]:
    if size.quick:
        return [(p, QUICK_POINTS[p.name]) for p in points.POINTS if p.name in QUICK_POINTS]
    return [(point, way) for point in points.POINTS for way in WAYS]


def _progress(number: int) -> Callable[[campaign.Tally], None]:
    def report_progress(tally: campaign.Tally) -> None:
        if len(tally.recoveries) % 25 == 0:
            print(f"  cloud {number}: {tally.kills} kills", flush=True)

    return report_progress


def _add_points(report: Report, found: list[dict[str, Any]]) -> None:
    bad = [f"{o['point']}, {o['way']}: {o['problem']}" for o in found if o["problem"]]
    report.add("kill points survived", f"{len(found) - len(bad)}/{len(found)}", bad, found)
    for point in points.POINTS:
        times = [o["recovery_seconds"] for o in found if o["point"] == point.name]
        if times:
            figure = f"recovery p50 {statistics.median(times):.1f} s, p95 {_p95(times):.1f} s"
            report.add(f"  {point.name}", f"{figure}: {point.what}", (), None)


def _add_faults(report: Report, found: list[dict[str, Any]]) -> None:
    bad = [f"{met['fault']}: {met['problem']}" for met in found if met["problem"]]
    report.add("faults met", f"{len(found) - len(bad)}/{len(found)}", bad, found)


def _add_races(report: Report, found: list[dict[str, Any]]) -> None:
    bad = [f"{race['runners']} at once: {race['problem']}" for race in found if race["problem"]]
    sizes = ", ".join(str(race["runners"]) for race in found)
    report.add("ups at once", f"{sizes}: one job each, {len(bad)} problems", bad, found)


def _add_kills(report: Report, found: list[dict[str, Any]], what: str = "random kills") -> None:
    kills, jobs = (sum(tally[key] for tally in found) for key in ("kills", "jobs"))
    twice = [text for tally in found for text in tally["duplicates"]]
    lost = [text for tally in found for text in tally["lost"]]
    # Rule of three: nothing in n trials bounds the rate at 3/n with 95 % confidence.
    cancelled = [text for tally in found for text in tally["cancelled"]]
    bound = f"; rate below {3 / kills:.2%} (95 %)" if kills and not twice and not lost else ""
    figure = f"{kills}, {jobs} jobs: {len(twice)} submitted twice, {len(lost)} lost{bound}"
    if what != "random kills":
        figure += f"; {len(cancelled)} trials cancelled"
    report.add(what, figure, [*twice, *lost, *cancelled], found)
    times = [seconds for tally in found for seconds in tally["recoveries"]]
    if times:
        figure = f"p50 {statistics.median(times):.1f} s, p95 {_p95(times):.1f} s"
        report.add("  recovery", figure, (), None)


def _add_builds(report: Report, size: Size) -> None:
    """Kills of builds of images, where a builder, a registry and a base image are there."""
    program = find_program()
    if not (program and shutil.which("buildah") and os.geteuid() == 0 and mirror.has_stand_in()):
        report.add("builds of images killed", "not run: see `make containers`", (), None)
        return
    chosen = build_kills.SAMPLE if size.quick else build_kills.POINTS
    with build_kills.builds(program, mirror.layout()) as builds:
        found = {str(point): builds.trial(point) for point in chosen}
    bad = [f"{point}: {problem}" for point, problem in found.items() if problem]
    figure = f"{len(found) - len(bad)}/{len(found)}: one digest, nothing left"
    report.add("builds of images killed", figure, bad, found)


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main())
