"""One session of pytest for all tiers of ``make test``: their order, and what became of each.

A tier is a folder of ``tests/``. Of the long files the longest go first, so that no process idles
at the end while another is busy with one of them. Short files go between them: long ones keep the
cores busy, short ones often wait. How long a file takes is what it took in the run before, in
pytest's cache; where that is not known, it is told by the tier.

Stories with the engine take most of the time. Each commit runs a few that always run, and a sixth
of the others, so that every change meets some, and the next changes the others.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

#: Seconds to expect of a file that has not run yet, by tier, and of a file of any other tier.
EXPECTED: Final = {
    **dict.fromkeys(("chaos", "clients", "e2e", "teams"), 150.0),
    **dict.fromkeys(("containers", "languages"), 120.0),  # later: they are PREPARED
    **dict.fromkeys(("browser", "golden", "policy"), 60.0),
}
SHORT: Final = 7.0
#: Seconds from which a file is long.
LONG: Final = 20.0
#: How much of the short files has begun when all long ones have: what runs last is short.
PACE: Final = 0.7
#: Tiers for which ``tools/run-tests`` finds or installs programs while others run.
PREPARED: Final = ("browser", "containers", "languages")
#: Variable with the path of a file that is there when it has ended.
READY: Final = "VT_TESTS_READY"
READY_SECONDS: Final = 1200.0
#: Where the stories are: files that start an engine, a local cloud or a browser, most for minutes.
STORIES: Final = ("browser", "chaos", "clients", "containers", "e2e", "languages", "teams")
#: Those that every commit runs: the README's main job, its way from a branch to a deployment, what
#: the official SDK gets, a stack's end, the schema of other languages, and whether kills are
#: noticed.
ALWAYS: Final = (
    "tests/chaos/test_ladder.py",
    "tests/chaos/test_mutants.py",
    "tests/chaos/test_protocol_machine.py",
    "tests/chaos/test_real_cli.py",
    "tests/clients/test_jobs.py",
    "tests/e2e/test_gitops.py",
    "tests/e2e/test_local_stack.py",
    "tests/languages/test_schema.py",
    "tests/teams/test_destroy.py",
)
#: Stories without an engine that take as long: the whole site of the docs.
BESIDE: Final = ("tests/unit/docs/test_site.py",)
#: One of so many of the others, unless the variable is ``all``.
SHARE: Final = 6
ALL_STORIES: Final = "VT_TESTS_STORIES"
#: Seconds by file, in pytest's cache.
CACHE: Final = "tiers/seconds"
LEFT_OUT: Final = pytest.StashKey[set[Path]]()


def tier_of(test: str) -> str:
    """The tier of a test or of a file of tests, by its id."""
    parts = Path(test.partition("::")[0]).parts
    return parts[1] if parts[:1] == ("tests",) and len(parts) > 2 else "other"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every worker the same times: xdist wants the same order of all."""
    node.workerinput[CACHE] = node.config.cache.get(CACHE, {})


def stories(folder: Path) -> list[str]:
    """The files of the checkout in ``folder`` of which a commit runs a share."""
    files = {
        path.relative_to(folder).as_posix()
        for tier in STORIES
        for path in folder.glob(f"tests/{tier}/test_*.py")
        if path.name != "test_bench.py"  # `make bench`
    }
    return sorted({*files, *(file for file in BESIDE if (folder / file).exists())} - {*ALWAYS})


def chosen(files: Iterable[str], commit: str) -> list[str]:
    """The stories that a commit runs, in their order: its share, rounded up."""
    order = sorted(files, key=lambda file: hashlib.sha256(f"{commit} {file}".encode()).digest())
    return sorted(order[: -(-len(order) // SHARE)])


def left_out(folder: Path) -> list[str]:
    """The stories that the commit in ``folder`` does not run."""
    if os.environ.get(ALL_STORIES) == "all":
        return []
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False
    )
    every = stories(folder)
    return sorted({*every} - {*chosen(every, told.stdout.strip())})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave stories out."""
    if LEFT_OUT not in config.stash:
        config.stash[LEFT_OUT] = {config.rootpath / file for file in left_out(config.rootpath)}
    return True if collection_path in config.stash[LEFT_OUT] else None


def in_turns(seconds: Mapping[str, float]) -> list[str]:
    """Files in the order in which they start, by the seconds that each takes."""
    order = sorted(seconds, key=lambda file: -seconds[file])  # a stable one: all workers need it
    long = [file for file in order if seconds[file] >= LONG]
    short = order[len(long) :]
    all_long, all_short = (sum(map(seconds.__getitem__, files)) for files in (long, short))
    turns, begun, between = [], 0.0, 0.0
    waiting = iter(short)
    for file in long:
        turns.append(file)
        begun += seconds[file]
        while between < PACE * all_short * begun / all_long and (other := next(waiting, None)):
            turns.append(other)
            between += seconds[other]
    return [*turns, *waiting]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files; the tests of a file stay together, in their order."""
    known = getattr(config, "workerinput", {}).get(CACHE, {})
    files = dict.fromkeys(item.nodeid.partition("::")[0] for item in items)
    expected = {file: known.get(file, EXPECTED.get(tier_of(file), SHORT)) for file in files}
    turn = {file: number for number, file in enumerate(in_turns(expected))}
    items.sort(key=lambda item: turn[item.nodeid.partition("::")[0]])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold back a test whose tier is not ready; its own time limit runs from then on."""
    ready = os.environ.get(READY)
    if ready and tier_of(item.nodeid) in PREPARED:
        until = time.monotonic() + READY_SECONDS
        while not Path(ready).exists() and time.monotonic() < until:
            time.sleep(0.2)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected, some 400 MB a process, out of every search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Summary:
    """What became of each tier, and how long each file took."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, and what failed before or after it."""
        if report.when == "call" or not report.passed:
            self.outcomes[tier_of(report.nodeid)][report.outcome] += 1
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported."""
        if report.failed:
            self.outcomes[tier_of(report.nodeid)][report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print a line for each tier, and remember the times."""
        spent: defaultdict[str, float] = defaultdict(float)
        for file, seconds in self.seconds.items():
            spent[tier_of(file)] += seconds
        terminalreporter.section("tiers")
        for tier, counts in sorted(self.outcomes.items()):
            told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            terminalreporter.write_line(f"{tier:12}{spent[tier]:7.0f} s  {told}")
        failed = sorted(tier for tier, counts in self.outcomes.items() if counts["failed"])
        passed = sorted(self.outcomes.keys() - set(failed))
        terminalreporter.write_line(f"passed: {' '.join(passed) or 'none'}")
        if failed:
            terminalreporter.write_line(f"FAILED: {' '.join(failed)}")
        if names := left_out(config.rootpath):
            every = len(stories(config.rootpath))
            terminalreporter.write_line(
                f"{every - len(names)} of {every} long stories ran, by the commit, beside those "
                f"that always run; all: make test STORIES=all. Left out: "
                + " ".join(name.removeprefix("tests/").removesuffix(".py") for name in names)
            )
        if config.cache:
            known = config.cache.get(CACHE, {}) | self.seconds
            config.cache.set(CACHE, {file: round(known[file], 1) for file in sorted(known)})


def pytest_configure(config: pytest.Config) -> None:
    """Summarize where reports arrive, which is not in a worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())
