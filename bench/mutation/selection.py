"""Which tests can notice a mutant: those that execute its line, those near it, golden tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage

from bench.mutation.copies import Copy, files
from bench.mutation.recorder import VARIABLE
from bench.mutation.sites import Mutant
from tools.quick import GOLDEN, distances, import_graph

#: Seconds of tests, as measured without a mutant: those that execute the line, and those near it.
NEAR_BUDGET: Final = 40.0
FAR_BUDGET: Final = 60.0
#: Tests without an engine; those of policies are beside the tests of the pack.
UNIT: Final = ("tests/unit", "tests/security", "tests/policy/test_policies.py")
CONFIG: Final = """\
[run]
relative_files = true
source = {folders}
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tests to run, one group after the other until a test fails."""

    near: Sequence[str]
    far: Sequence[str]
    golden: Sequence[str]


@dataclass
class TestMap:
    """What each test executes, as measured once for a tree."""

    __test__ = False
    lines: dict[str, dict[int, set[str]]]
    """Product file -> line -> tests; a line executed by imports alone has none."""
    seconds: dict[str, float]
    imports: dict[str, set[str]]
    """File -> files of the tree that it imports."""
    flaky: set[str] = field(default_factory=set)
    """Tests that failed without a mutant."""

    def select(self, mutant: Mutant) -> Selection:
        """The tests for a mutant."""
        lines = self.lines.get(mutant.path, {})
        anywhere = {test for tests in lines.values() for test in tests}
        far_from = distances(self.imports, [mutant.path])
        importers = {file for file, distance in far_from.items() if distance == 1}
        if mutant.at_import:
            near = anywhere | self._tests_in(importers)
            far = self._tests_in(far_from)
        else:
            near = _executing(lines, mutant.lines) or _executing(lines, mutant.statement)
            far = anywhere | self._tests_in(importers)
        golden = [file for file, parts in GOLDEN.items() if mutant.path.startswith(parts)]
        return Selection(
            self._within(near, NEAR_BUDGET, mutant.path, far_from),
            self._within(far - near, FAR_BUDGET, mutant.path, far_from),
            [file for file in golden if file in self.imports],
        )

    def _tests_in(self, files: Iterable[str]) -> set[str]:
        files = set(files)
        return {test for test in self.seconds if test.partition("::")[0] in files}

    def _within(
        self, tests: Iterable[str], budget: float, path: str, far_from: Mapping[str, int]
    ) -> list[str]:
        """The tests that fit: the file named after the module, the nearest, the quickest first."""
        mirror = f"test_{Path(path).stem}.py::"

        def order(test: str) -> tuple[bool, int, float, str]:
            distance = far_from.get(test.partition("::")[0], len(far_from))
            return mirror not in test, distance, self.seconds.get(test, 0.0), test

        chosen, total = [], 0.0
        for test in sorted(set(tests) - self.flaky, key=order):
            total += self.seconds.get(test, 0.0)
            if total <= budget or not chosen:
                chosen.append(test)
        return chosen


def _executing(lines: dict[int, set[str]], between: tuple[int, int]) -> set[str]:
    first, last = between
    return {test for line in range(first, last + 1) for test in lines.get(line, ())}


def measure(copy: Copy, cache: Path, folders: Sequence[str], jobs: int) -> TestMap:
    """Run all unit tests once under coverage, unless ``cache`` has it."""
    data, times = cache / "coverage", cache / "durations.json"
    if not times.exists():
        cache.mkdir(parents=True, exist_ok=True)
        config = cache / "coveragerc"
        config.write_text(CONFIG.format(folders=",".join(folders)))
        command = [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                *(t for t in UNIT if (copy.path / t).exists()),
                "-p",
                "bench.mutation.recorder",
            ),
            *("-p", "no:cacheprovider", "--cov", "--cov-context=test", "--cov-report="),
            *(f"--cov-config={config}", *(("-n", str(jobs)) if jobs > 1 else ())),
        ]
        environment = copy.environment | {VARIABLE: str(times), "COVERAGE_FILE": str(data)}
        done = subprocess.run(command, cwd=copy.path, env=environment, capture_output=True)
        (cache / "pytest.log").write_bytes(done.stdout + done.stderr)
        if not times.exists() or not data.exists():
            raise SystemExit(f"The unit tests could not be measured: see {cache / 'pytest.log'}")
    return _read(copy.path, data, json.loads(times.read_text()))


def _read(root: Path, data: Path, times: dict) -> TestMap:
    recorded = coverage.CoverageData(str(data))
    recorded.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for file in recorded.measured_files():
        found = recorded.contexts_by_lineno(file)
        lines[file] = {
            line: {context.rpartition("|")[0] for context in contexts if context}
            for line, contexts in found.items()
        }
    return TestMap(lines, times["seconds"], import_graph(root, files(root)), set(times["failed"]))
