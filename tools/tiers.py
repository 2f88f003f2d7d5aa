"""One pytest session for all tiers of ``make test``: order and results.

A tier is a folder of ``tests/``. The longest files start first, and short files between them, since
long files use the cores and short files often wait. Durations are from pytest's cache. Each commit
runs one story of each kind (``KINDS``) without tests marked ``nightly``; every night runs all.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

#: Expected seconds of a file that has not run yet, by tier. SHORT is the value for other tiers.
EXPECTED: Final = {
    **dict.fromkeys(("chaos", "clients", "e2e", "teams"), 150.0),
    **dict.fromkeys(("containers", "languages"), 120.0),  # later, because they are PREPARED
    **dict.fromkeys(("browser", "golden", "policy"), 60.0),
}
SHORT: Final = 7.0
#: Minimum number of seconds of a long file.
LONG: Final = 20.0
#: Share of the short files that start before the last long file.
PACE: Final = 0.7
#: Tiers for which ``tools/run-tests`` finds or installs programs while other tiers run.
PREPARED: Final = ("browser", "containers", "languages")
#: Environment variable with the path of a file that exists once the programs are installed.
READY: Final = "VT_TESTS_READY"
READY_SECONDS: Final = 1200.0
#: Tiers of stories. Their files start an engine, a local cloud or a browser, and run for minutes.
STORIES: Final = ("browser", "chaos", "clients", "containers", "e2e", "languages", "teams")
#: Kinds of stories and their files. Every commit runs the first file of each kind;
#: ``VT_TESTS_STORIES=all`` runs all files.
KINDS: Final = {
    "submission": ("e2e/local_stack", "e2e/state_of_jobs", "e2e/recorded_state", "e2e/waiting",
                   "e2e/run", "e2e/prebuilt_images", "e2e/distributed", "e2e/canaries",
                   "e2e/command_lines"),
    "kill and resume": ("chaos/real_cli", "e2e/vt_up"),
    "protocol": ("chaos/protocol_machine",),
    "protocol mutants": ("chaos/mutants",),
    "tuning": ("e2e/tuning",),
    "batch": ("e2e/batch", "clients/batch", "containers/batch"),
    "endpoint": ("e2e/endpoint_of_titanic", "e2e/serving", "chaos/serving", "clients/serving",
                 "containers/serving"),
    "snapshot": ("e2e/snapshots", "chaos/snapshots"),
    "schedule": ("e2e/schedules", "chaos/schedules"),
    "ladder": ("chaos/ladder", "e2e/ladder"),
    "alerts": ("e2e/alerts", "e2e/idle_stop"),
    "deployment by approval": ("e2e/gitops", "e2e/deploy_plan", "e2e/bootstrap"),
    "networks and reservations": ("e2e/reservations", "e2e/networks", "e2e/fit_checks"),
    "drift": ("teams/drift_by_hand", "teams/deleted_data", "e2e/deleted_data"),
    "destroy": ("teams/destroy",),
    "lost state": ("teams/lost_state", "teams/recovery_page"),
    "teams": ("teams/two_stacks_of_a_project", "teams/teams_apart", "teams/shared_resources",
              "teams/environment_is_renamed", "teams/jobs_move_between_stacks", "teams/renames",
              "teams/wrong_stack_files"),
    "changes of running jobs": ("teams/asked_before_a_job_is_cancelled",
                                "teams/changes_of_running_jobs",
                                "teams/refused_after_a_cancellation"),
    "repository of vt init": ("e2e/init",),
    "official SDK": ("clients/jobs", "clients/every_tutorial_step",
                     "clients/gcloud_forms", "clients/storage", "e2e/tensorboard",
                     "e2e/localgcp_alone"),
    "import": ("e2e/import", "clients/recorded_imports"),
    "programs of other teams": ("e2e/existing_programs", "e2e/existing_projects_page", "e2e/extra",
                           "e2e/automation_api", "e2e/component_options", "e2e/two_providers",
                           "e2e/language_host"),
    "other languages": ("languages/schema", "languages/yaml", "languages/python",
                        "languages/typescript", "languages/everything", "languages/templates"),
    "images": ("containers/registry", "containers/image_story", "containers/jobs",
               "containers/build_kills"),
    "pages in a browser": ("browser/pages_reach_nothing", "browser/review_page"),
    "first run": ("e2e/first_run",),
}  # fmt: skip
#: Kinds that run only with ``VT_TESTS_STORIES=all``.
NIGHTLY: Final = ("first run",)
#: Long tests without an engine: the site of the documentation.
BESIDE: Final = ("tests/unit/docs/test_site.py",)
ALL_STORIES: Final = "VT_TESTS_STORIES"
#: Key in pytest's cache of the seconds of each file.
CACHE: Final = "tiers/seconds"
LEFT_OUT: Final = pytest.StashKey[set[Path]]()


def tier_of(test: str) -> str:
    """Return the tier of a test or test file from its id."""
    parts = Path(test.partition("::")[0]).parts
    return parts[1] if parts[:1] == ("tests",) and len(parts) > 2 else "other"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass equal file durations to every worker, because xdist requires one test order."""
    node.workerinput[CACHE] = node.config.cache.get(CACHE, {})


def file_of(story: str) -> str:
    """Return the path of the test file for a name in ``KINDS``."""
    tier, _, name = story.partition("/")
    return f"tests/{tier}/test_{name}.py"


def left_out() -> list[str]:
    """Return the story files that this run omits."""
    if os.environ.get(ALL_STORIES) == "all":
        return []
    later = [story for kind, files in KINDS.items() for story in files[kind not in NIGHTLY :]]
    return sorted([*map(file_of, later), *BESIDE])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Omit the stories that do not belong to this run."""
    if LEFT_OUT not in config.stash:
        config.stash[LEFT_OUT] = {config.rootpath / file for file in left_out()}
    return True if collection_path in config.stash[LEFT_OUT] else None


def in_turns(seconds: Mapping[str, float]) -> list[str]:
    """Return the files in start order, from their durations in seconds."""
    order = sorted(seconds, key=lambda file: -seconds[file])  # stable: workers need one order
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
    """Order the files. The tests of a file stay together, in their order."""
    known = getattr(config, "workerinput", {}).get(CACHE, {})
    files = dict.fromkeys(item.nodeid.partition("::")[0] for item in items)
    expected = {file: known.get(file, EXPECTED.get(tier_of(file), SHORT)) for file in files}
    turn = {file: number for number, file in enumerate(in_turns(expected))}
    items.sort(key=lambda item: turn[item.nodeid.partition("::")[0]])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Delay a test until its tier is ready. The time limit of the test starts then."""
    ready = os.environ.get(READY)
    if ready and tier_of(item.nodeid) in PREPARED:
        until = time.monotonic() + READY_SECONDS
        while not Path(ready).exists() and time.monotonic() < until:
            time.sleep(0.2)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude collected tests, about 400 MB per process, from garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Summary:
    """Collects the outcomes of each tier and the duration of each file."""

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, and also errors before and after the test."""
        if report.when == "call" or not report.passed:
            self.outcomes[tier_of(report.nodeid)][report.outcome] += 1
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported."""
        if report.failed:
            self.outcomes[tier_of(report.nodeid)][report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print a line for each tier, and store the durations of the files."""
        spent: defaultdict[str, float] = defaultdict(float)
        for file, seconds in self.seconds.items():
            spent[tier_of(file)] += seconds
        terminalreporter.section("tiers")
        for tier, counts in sorted(self.outcomes.items()):
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            terminalreporter.write_line(f"{tier:12}{spent[tier]:7.0f} s  {outcomes}")
        failed = sorted(tier for tier, counts in self.outcomes.items() if counts["failed"])
        passed = sorted(self.outcomes.keys() - set(failed))
        terminalreporter.write_line(f"passed: {' '.join(passed) or 'none'}")
        if failed:
            terminalreporter.write_line(f"FAILED: {' '.join(failed)}")
        if names := left_out():
            terminalreporter.write_line(
                "one story of each kind ran. `make test STORIES=all` also runs the other "
                f"{len(names)} files and the tests marked nightly"
            )
        if config.cache:
            known = config.cache.get(CACHE, {}) | self.seconds
            config.cache.set(CACHE, {file: round(known[file], 1) for file in sorted(known)})


def pytest_configure(config: pytest.Config) -> None:
    """Omit nightly tests, and print the summary in the main process."""
    if os.environ.get(ALL_STORIES) != "all":
        config.option.markexpr = config.option.markexpr or "not nightly"
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())
