"""Test that submissions survive kills, faults and races: ``make chaos``, QUICK=1 for a sample.

Runs the real CLI and clients on two local clouds, and a state machine and mutants of the protocol
in memory. Image builds, snapshots, schedules, uploads and deployments of models are killed, too.
Prints a table and writes a JSON. Exit code 1 if a run lost or repeated a submission.
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
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from localgcp.containers import registry
from localgcp.containers.registry import find_program
from tests.chaos import (
    campaign,
    ladder,
    ladder_kills,
    matrix,
    points,
    races,
    schedules,
    serving,
    snapshots,
    trial,
)
from tests.chaos.arena import Arena
from tests.chaos.machine import run_machine
from tests.chaos.mutation import run_mutants, sample
from tests.chaos.ways import WAYS
from tests.containers import build_kills
from vertex_training.customjob.kinds import BATCH_JOB, KINDS, TUNING_JOB

ARENAS: Final = 2
QUICK_POINTS: Final = {"F1": "kill CLI", "F3": "kill CLI", "F5": "kill provider", "F7": "kill CLI",
                "F8": "kill provider", "F11": "kill CLI", "F12": "interrupt twice",
                "F19": "kill CLI"}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """The share of each part that runs with one kind of job."""

    kills: int
    steps: int
    runners: tuple[int, ...]
    points: tuple[tuple[points.Point, str], ...]
    """Crash points, each with a way to kill the process."""
    faults: int | None = None
    """Number of faults in a sample; None for all faults."""


def _some_ways(count: int) -> tuple[tuple[points.Point, str], ...]:
    ways = tuple(WAYS)
    return tuple(
        (point, ways[(place + turn) % len(ways)])
        for place, point in enumerate(points.POINTS)
        for turn in range(count)
    )


def _points_named(names: Iterable[str]) -> tuple[tuple[points.Point, str], ...]:
    return tuple((p, QUICK_POINTS[p.name]) for p in points.POINTS if p.name in names)


#: Shares by the names of the parts. Tuning jobs have the same protocol with other labels and
#: records. Jobs on Batch have the protocol for services that accept names of jobs.
FULL: Final = {
    "jobs": Share(1000, 100_000, (2, 3, 4, 6, 8), _some_ways(len(WAYS))),
    "tuning": Share(120, 60_000, (2, 4), _some_ways(2)),
    "batch": Share(120, 60_000, (2, 4), _some_ways(2)),
}
QUICK: Final = {
    "jobs": Share(12, 5_000, (2,), _points_named(QUICK_POINTS), faults=10),
    "tuning": Share(4, 2_000, (2,), _points_named(("F5", "F8")), faults=4),
    "batch": Share(4, 2_000, (2,), _points_named(("F5", "F8")), faults=4),
}
#: Numbers of all runs and of a sample. Serving: kills of processes that upload, deploy and split.
SERVING: Final = (200, 4)
#: Snapshots: kills of processes that take a snapshot, kills at a call, and races.
SNAPSHOTS: Final = ((120, 1_000, 10), (6, 3, 1))
#: Schedules: years of virtual time for each treatment of missed slots, kills of real processes,
#: kills at a call, and weeks of real processes.
SCHEDULES: Final = ((60, 120, 1_000, schedules.WEEKS), (1, 0, 2, 6))
#: Ladders: examples of the state machine, and kills of processes that submit ladders.
LADDERS: Final = ((1_000, 100), (25, 5))
KIND_OF: Final = {**{kind.section: kind for kind in KINDS}, BATCH_JOB.backend: BATCH_JOB}


@dataclass
class Report:
    """Printed and written results: rows of (title, figure), problems, and details."""

    seed: int
    rows: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, figure: str, problems: Iterable[str], detail: Any) -> None:
        """Add the result of a part, and print the result."""
        self.rows.append((what, figure))
        self.problems += [f"{what}: {problem}" for problem in problems]
        self.details[what] = detail
        print(f"{what:28} {figure}", flush=True)


def main() -> int:
    """Run all parts. Exit codes: 0 without a problem, 1 with a problem."""
    options = _options()
    shares = QUICK if options.quick else FULL
    chosen = {name: share for name, share in shares.items() if options.part in ("", name)}
    report, began = Report(options.seed), time.monotonic()
    print(f"seed {report.seed}: repeat with SEED={report.seed}", flush=True)
    for name, share in chosen.items():
        _walk(report, name, share)
    if "jobs" in chosen:
        _mutate(report, options.quick)
    for name, share in chosen.items():
        _with_cli(report, name, share)
    if "jobs" in chosen:
        _add_builds(report, options.quick)
    for part, add in PARTS.items():
        if options.part in ("", part):
            add(report, options.quick)
    report.add("minutes", f"{(time.monotonic() - began) / 60:.1f}", (), None)
    options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
    for problem in report.problems:
        print(f"PROBLEM {problem}", file=sys.stderr)
    return 1 if report.problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="run a sample, in minutes")
    parts = (*KIND_OF, *PARTS)
    parser.add_argument("--part", choices=(*parts, ""), default="", help="run only this part")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--json", type=Path, default=Path("chaos.json"))
    return parser.parse_args()


def _walk(report: Report, name: str, share: Share) -> None:
    walked = run_machine(share.steps, report.seed, KIND_OF[name])
    figure = f"{walked.steps:,} in {walked.examples:,} examples"
    report.add(_row("state machine steps", name), figure, walked.violations, asdict(walked))


def _mutate(report: Report, quick: bool) -> None:
    results = run_mutants(names=sample(6, report.seed) if quick else ())
    alive = [result.name for result in results if not result.killed]
    figure = f"{len(results) - len(alive)}/{len(results)} killed"
    report.add("protocol mutants", figure, alive, [asdict(result) for result in results])


def _row(what: str, name: str) -> str:
    return what if name == "jobs" else f"{what}, {name}"


def _with_cli(report: Report, name: str, share: Share) -> None:
    # The processes are spawned, because gRPC does not work after a fork.
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        ProcessPoolExecutor(ARENAS, context) as pool,
    ):
        arenas = [(Path(folder), name, number, report.seed, share) for number in range(ARENAS)]
        results = list(pool.map(_in_arena, arenas))
    outcomes, faults, raced, tallies = (list(chain(*part)) for part in zip(*results, strict=True))
    _add_trials(report, _row("survived crash points", name), outcomes, "{0.point}, {0.way}")
    for point in points.POINTS:
        times = [o.recovery_seconds for o in outcomes if o.point == point.name]
        if times:
            figure = f"recovery {_recovery(times)}: {point.what}"
            report.add(_row(f"  {point.name}", name), figure, (), None)
    _add_trials(report, _row("injected faults", name), faults, "{0.fault}")
    _add_trials(report, _row("concurrent runs of up", name), raced, "{0.runners} concurrent runs")
    _add_kills(report, name, tallies)


def _add_trials(report: Report, what: str, trials: Sequence[Any], label: str) -> None:
    """Add trials that each have one ``problem`` or none. ``label`` formats a trial with one."""
    bad = [f"{label.format(trial)}: {trial.problem}" for trial in trials if trial.problem]
    figure = f"{len(trials) - len(bad)}/{len(trials)}"
    report.add(what, figure, bad, [asdict(trial) for trial in trials])


def _in_arena(work: tuple[Path, str, int, int, Share]) -> tuple[list[Any], ...]:
    """Return the results for crash points, faults, races and kills in a local cloud."""
    folder, name, number, seed, share = work

    def mine(of: Iterable[Any]) -> list[Any]:  # the share of this local cloud
        return list(of)[number::ARENAS]

    with Arena(folder / f"arena-{number}", KIND_OF[name]) as arena:
        outcomes = [
            trial.run(arena, point, way, f"p{number}x{index}x:1:1")
            for index, (point, way) in enumerate(mine(share.points))
        ]
        faults = list(matrix.faults(arena.kind))
        chosen = random.Random(seed).sample(faults, share.faults or len(faults))
        met = [
            matrix.meet(arena, fault, f"m{number}x{index}")
            for index, fault in enumerate(mine(chosen))
        ]
        raced = [races.race(arena, n, f"c{number}x{n}:1:1") for n in mine(share.runners)]
        kills = campaign.run(arena, share.kills // ARENAS, seed + number, _progress(number))
    return outcomes, met, raced, [kills]


def _progress(number: int) -> Callable[[campaign.Tally], None]:
    def report_progress(tally: campaign.Tally) -> None:
        if len(tally.recoveries) % 25 == 0:
            print(f"  cloud {number}: {tally.kills} kills", flush=True)

    return report_progress


def _add_kills(report: Report, name: str, tallies: list[campaign.Tally]) -> None:
    kills, jobs = sum(tally.kills for tally in tallies), sum(tally.jobs for tally in tallies)
    twice = [text for tally in tallies for text in tally.duplicates]
    lost = [text for tally in tallies for text in tally.lost]
    cancelled = [text for tally in tallies for text in tally.cancelled]
    # Rule of three: n trials without an event bound the rate at 3/n with 95 % confidence.
    bound = f"; rate below {3 / kills:.2%} (95 %)" if kills and not twice and not lost else ""
    figure = f"{kills}, {jobs} jobs: {len(twice)} submitted twice, {len(lost)} lost{bound}"
    if KIND_OF[name] is TUNING_JOB:
        figure += f"; {len(cancelled)} trials cancelled"
    problems = [*twice, *lost, *cancelled]
    report.add(_row("random kills", name), figure, problems, list(map(asdict, tallies)))
    times = [seconds for tally in tallies for seconds in tally.recoveries]
    if times:
        report.add(_row("  recovery", name), _recovery(times), (), None)


def _add_builds(report: Report, quick: bool) -> None:
    program = find_program()  # of a registry
    if not (program and shutil.which("buildah") and os.geteuid() == 0 and registry.has_stand_in()):
        report.add("killed image builds", "not run: see `make containers`", (), None)
        return
    chosen = build_kills.SAMPLE if quick else build_kills.POINTS
    with build_kills.builds(program, registry.stand_in_folder()) as builds:
        trials = {str(point): builds.trial(point) for point in chosen}
    bad = [f"{point}: {problem}" for point, problem in trials.items() if problem]
    figure = f"{len(trials) - len(bad)}/{len(trials)}: one digest, no leftovers"
    report.add("killed image builds", figure, bad, trials)


def _add_serving(report: Report, quick: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="chaos-serving-") as folder:
        done = serving.run(Path(folder, "kills"), SERVING[quick], report.seed, _report_round)
        raced = serving.race(Path(folder, "race"), report.seed)
    figure = (
        f"{done.kills} in {done.rounds} versions; split checked {done.looks:,} times, "
        f"with {done.answered:,} requests: {len(done.problems)} problems"
    )
    report.add("serving, random kills", figure, done.problems, asdict(done))
    report.add("  recovery, serving", _recovery(done.recoveries), (), None)
    figure = (
        f"split checked {raced.looks:,} times, {raced.answered:,} requests: "
        f"{len(raced.problems)} problems"
    )
    report.add("serving, 2 concurrent operators", figure, raced.problems, asdict(raced))


def _add_snapshots(report: Report, quick: bool) -> None:
    kills, calls, races = SNAPSHOTS[quick]
    with tempfile.TemporaryDirectory(prefix="chaos-snapshots-") as folder:
        done = snapshots.run(Path(folder, "kills"), kills, report.seed, calls)
        raced = snapshots.race(Path(folder, "race"), report.seed, races)
    figure = (
        f"{done.kills}, {done.points} of them at a call, in {done.requests} requests: one "
        f"query, one export, one manifest each, {len(done.problems)} problems"
    )
    report.add("snapshots, kills", figure, done.problems, asdict(done))
    figure = f"{raced.requests} requests: {len(raced.problems)} problems"
    report.add("snapshots, 2 concurrent operators", figure, raced.problems, asdict(raced))


def _add_schedules(report: Report, quick: bool) -> None:
    years, kills, calls, weeks = SCHEDULES[quick]
    for missed in ("all", "latest", "skip"):
        done = schedules.virtual(report.seed, years, missed)
        figure = (
            f"{done.jobs:,} jobs and folders of {done.slots:,} slots in {done.years} "
            f"years: {done.processes:,} processes, {done.kills} killed, {done.calls:,} "
            f"failed calls, {len(done.problems)} problems"
        )
        report.add(f"schedules, missed slots: {missed}", figure, done.problems, asdict(done))
    with tempfile.TemporaryDirectory(prefix="chaos-schedules-") as folder:
        done = schedules.kills(Path(folder), kills, report.seed, calls, weeks)
    figure = (
        f"{done.kills}, {done.calls} of them at a call, {done.slots} slots: {done.jobs} jobs, "
        f"{done.folders} folders, {len(done.problems)} problems"
    )
    report.add("schedules, kills", figure, done.problems, asdict(done))


def _add_ladder(report: Report, quick: bool) -> None:
    examples, kills = LADDERS[quick]
    try:
        walked = ladder.run_ladders(examples, report.seed)
    except Exception as violation:
        text = "".join(traceback.format_exception(violation))
        report.add("ladders, state machine", "a violation", [text], {"sent": [0]})
    else:
        sent = ", ".join(f"{count:,}" for count in walked.sent)
        figure = f"{walked.examples:,} examples; rungs sent {sent}: 0 problems"
        report.add("ladders, state machine", figure, (), asdict(walked))
    with tempfile.TemporaryDirectory(prefix="chaos-ladder-") as folder:
        done = ladder_kills.run(Path(folder), kills, report.seed)
    figure = (
        f"{done.kills} in {done.jobs} ladders ({done.survived} had ended before), "
        f"{done.looks} checks: {len(done.problems)} problems"
    )
    report.add("ladders, kills", figure, done.problems, asdict(done))


def _report_round(tally: serving.Tally) -> None:
    if tally.rounds % 10 == 0:
        print(f"  {tally.kills} kills", flush=True)


def _recovery(seconds: list[float]) -> str:
    slow = sorted(seconds)[min(len(seconds) - 1, round(0.95 * len(seconds)))]
    return f"p50 {statistics.median(seconds):.1f} s, p95 {slow:.1f} s"


#: Parts that are not in ``FULL``, by their names.
PARTS: Final = {
    "serving": _add_serving,
    "snapshots": _add_snapshots,
    "schedule": _add_schedules,
    "ladder": _add_ladder,
}

if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main())
