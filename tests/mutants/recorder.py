"""A pytest plugin that writes how long each test took and which ones failed."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

#: Environment variable: the file to write.
VARIABLE: Final = "MUTANTS_DURATIONS"


class Recorder:
    """Collects reports; under xdist the controller gets those of all workers."""

    def __init__(self) -> None:
        """Nothing has run yet."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up set-up, call and tear-down."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        found = {"seconds": dict(self.seconds), "failed": sorted(self.failed)}
        Path(os.environ[VARIABLE]).write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that has all reports."""
    if not hasattr(config, "workerinput") and VARIABLE in os.environ:
        config.pluginmanager.register(Recorder())
