"""One session of pytest for all tiers of ``make test``: their order, and what became of each.

A tier is a folder of ``tests/``. The files that take longest go first, so that no process idles
while another is busy with one of them. How long a file takes is what it took in the run before, in
pytest's cache; where that is not known, the tiers that start the engine go before the others.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator
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
#: Seconds by file, in pytest's cache.
CACHE: Final = "tiers/seconds"


def tier_of(test: str) -> str:
    """The tier of a test or of a file of tests, by its id."""
    parts = Path(test.partition("::")[0]).parts
    return parts[1] if parts[:1] == ("tests",) and len(parts) > 2 else "other"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every worker the same times: xdist wants the same order of all."""
    node.workerinput[CACHE] = node.config.cache.get(CACHE, {})


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
        if config.cache:
            known = config.cache.get(CACHE, {}) | self.seconds
            config.cache.set(CACHE, {file: round(known[file], 1) for file in sorted(known)})


def pytest_configure(config: pytest.Config) -> None:
    """Summarize where reports arrive, which is not in a worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())
