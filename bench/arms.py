"""Run two commands alternately, and compare the medians of their durations."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


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
