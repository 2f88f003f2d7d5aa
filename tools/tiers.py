"""One session of pytest for all tiers of ``make test``: their order, and what became of each.

A tier is a folder of ``tests/``. The files that take longest go first, so that no process idles
while another is busy with one of them. How long a file takes is what it took in the run before, in
pytest's cache; where that is not known, the tiers that start the engine go before the others.

Long stories with the engine take nearly half of the time. Each commit runs a third of them, so that
every change meets some, and the next changes the others.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

#: Seconds to expect of a file that has not run yet, by tier.
EXPECTED: Final = {
    **dict.fromkeys(("chaos", "clients", "e2e", "golden", "policy", "teams"), 60.0),
    **dict.fromkeys(("browser", "containers", "languages"), 20.0),
}
#: Tiers for which ``tools/run-tests`` finds or installs programs while others run.
PREPARED: Final = ("browser", "containers", "languages")
#: Variable with the path of a file that is there when it has ended.
READY: Final = "VT_TESTS_READY"
READY_SECONDS: Final = 1200.0
#: Files of which each takes half a minute to three minutes of both cores. Those that always run
#: have a story of their kind: test_local_stack, test_gitops, test_serving, test_snapshots, chaos.
STORIES: Final = (
    "tests/clients/test_every_tutorial_step.py",
    "tests/containers/test_image_story.py",
    "tests/e2e/test_component_options.py",
    "tests/e2e/test_deleted_data.py",
    "tests/e2e/test_deploy_plan.py",
    "tests/e2e/test_distributed.py",
    "tests/e2e/test_endpoint_of_titanic.py",
    "tests/e2e/test_existing_programs.py",
    "tests/e2e/test_extra.py",
    "tests/e2e/test_init.py",
    "tests/e2e/test_networks.py",
    "tests/e2e/test_recorded_state.py",
    "tests/e2e/test_run.py",
    "tests/e2e/test_tensorboard.py",
    "tests/e2e/test_tuning.py",
    "tests/e2e/test_two_providers.py",
    "tests/e2e/test_verify.py",
    "tests/e2e/test_vt_up.py",
    "tests/languages/test_everything.py",
    "tests/languages/test_templates.py",
    "tests/teams/test_changes_of_running_jobs.py",
    "tests/teams/test_environment_is_renamed.py",
    "tests/teams/test_jobs_move_between_stacks.py",
    "tests/teams/test_lost_state.py",
    "tests/teams/test_recovery_page.py",
    "tests/teams/test_shared_resources.py",
    "tests/teams/test_two_stacks_of_a_project.py",
)
#: One story of so many runs, unless the variable is ``all``.
SHARE: Final = 3
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


def chosen(stories: Iterable[str], commit: str) -> list[str]:
    """The stories that a commit runs, in their order: a third of them, rounded up."""
    order = sorted(stories, key=lambda file: hashlib.sha256(f"{commit} {file}".encode()).digest())
    return sorted(order[: -(-len(order) // SHARE)])


def left_out(folder: Path) -> list[str]:
    """The stories that the commit in ``folder`` does not run."""
    if os.environ.get(ALL_STORIES) == "all":
        return []
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False
    )
    return sorted({*STORIES} - {*chosen(STORIES, told.stdout.strip())})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave stories out."""
    if LEFT_OUT not in config.stash:
        config.stash[LEFT_OUT] = {config.rootpath / file for file in left_out(config.rootpath)}
    return True if collection_path in config.stash[LEFT_OUT] else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files; the tests of a file stay together, in their order."""
    known = getattr(config, "workerinput", {}).get(CACHE, {})

    def expected(item: pytest.Item) -> float:
        file = item.nodeid.partition("::")[0]
        return known.get(file, EXPECTED.get(tier_of(file), 0.0))

    items.sort(key=expected, reverse=True)


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
        if stories := left_out(config.rootpath):
            ran = len(STORIES) - len(stories)
            terminalreporter.write_line(
                f"{ran} of {len(STORIES)} long stories ran, by the commit; all: make test "
                f"STORIES=all. Left out: {' '.join(Path(file).stem for file in stories)}"
            )
        if config.cache:
            known = config.cache.get(CACHE, {}) | self.seconds
            config.cache.set(CACHE, {file: round(known[file], 1) for file in sorted(known)})


def pytest_configure(config: pytest.Config) -> None:
    """Summarize where reports arrive, which is not in a worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())
