"""A pytest plugin that runs the named tests alone, and reports their durations and failures."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

#: Environment variables: a JSON file with the names of tests, and the file to write.
NAMES: Final = "MUTANTS_NAMES"
REPORT: Final = "MUTANTS_REPORT"


class SelectedTests:
    """A name without ``::`` is a file, or a folder, and selects all of its tests."""

    def __init__(self, names: set[str], report: Path) -> None:
        """Select tests by name; write the report at the end of the session."""
        self.names, self.report = names, report
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect other tests."""
        kept = [item for item in items if self._selects(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept

    def _selects(self, test: str) -> bool:
        file = Path(test.partition("::")[0])
        return not self.names.isdisjoint({test, *map(str, (file, *file.parents))})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported as a failure."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up set-up, call and tear-down."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report in the process that has the reports of all workers."""
        if not hasattr(session.config, "workerinput"):
            report = {"seconds": self.seconds, "failed": self.failed}
            self.report.write_text(json.dumps(report))


def pytest_configure(config: pytest.Config) -> None:
    """Read the names."""
    if names := os.environ.get(NAMES):
        selected = {name.rstrip("/") for name in json.loads(Path(names).read_text())}
        config.pluginmanager.register(SelectedTests(selected, Path(os.environ[REPORT])))
