"""Which tests can detect a mutant: those that execute its line, those near it, golden tests."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage

from tests.mutants.copies import Copy, digest, files
from tests.mutants.sites import Mutant
from tools.quick import GOLDEN, distances, import_graph

#: Seconds of tests, as measured without a mutant: those that execute the line, and those near it.
#: A rule of job files is executed by a thousand cases, of which two test it: nearly all must run;
#: no test executes the line of a table that an import makes, and its tests may be far away.
NEAR_BUDGET: Final = 240.0
FAR_BUDGET: Final = 60.0
#: Seconds for named tests without a mutant, and for all unit tests.
BASELINE_LIMIT: Final = 900.0
MEASURE_LIMIT: Final = 7200.0
#: Tests without an engine; those of policies are beside the tests of the pack.
UNIT: Final = ("tests/unit/", "tests/contract/", "tests/security/", "tests/policy/test_policies.py")


@dataclass
class TestMap:
    """What each test executes, as measured once for a tree."""

    __test__ = False
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    """Product file -> line -> tests; a line executed by imports alone has none."""
    seconds: dict[str, float] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)
    """File -> files of the tree that it imports."""
    flaky: set[str] = field(default_factory=set)
    """Tests that failed without a mutant, or not twice with one."""
    only: Sequence[str] = ()
    """Tests that judge every mutant, if nothing was measured."""

    def select(self, mutant: Mutant) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """The tests that execute a mutant, tests near it, and golden tests."""
        if self.only:
            return self.only, (), ()
        lines = self.lines.get(mutant.path, {})
        anywhere = {test for tests in lines.values() for test in tests}
        far_from = distances(self.imports, [mutant.path])
        importers = {file for file, distance in far_from.items() if distance == 1}
        if mutant.at_import:
            near = anywhere | self._tests_in(importers)
            far, far_budget = self._tests_in(far_from), NEAR_BUDGET
        else:
            near = _executing(lines, mutant.lines) or _executing(lines, mutant.statement)
            far, far_budget = anywhere | self._tests_in(importers), FAR_BUDGET
        golden = [file for file, parts in GOLDEN.items() if mutant.path.startswith(parts)]
        return (
            self._within(near, NEAR_BUDGET, mutant.path, far_from),
            self._within(far - near, far_budget, mutant.path, far_from),
            [file for file in golden if file in self.imports],
        )

    def _tests_in(self, files: Iterable[str]) -> set[str]:
        files = set(files)
        return {test for test in self.seconds if test.partition("::")[0] in files}

    def _within(
        self, tests: Iterable[str], budget: float, path: str, far_from: Mapping[str, int]
    ) -> list[str]:
        """The tests that fit: of the file named after the module, in its folders, the nearest."""
        module, folders = Path(path), set(Path(path).parent.parts)
        mirrors = (f"test_{module.stem}.py", f"test_{module.parent.name}.py")

        def order(test: str) -> tuple[bool, int, int, float, str]:
            file = Path(test.partition("::")[0])
            beside = len(folders.intersection(file.parent.parts))
            distance = far_from.get(str(file), len(far_from))
            return file.name not in mirrors, -beside, distance, self.seconds.get(test, 0.0), test

        chosen, total = [], 0.0
        for test in sorted(set(tests) - self.flaky, key=order):
            total += self.seconds.get(test, 0.0)
            if total <= budget or not chosen:
                chosen.append(test)
        return chosen


def _executing(lines: dict[int, set[str]], between: tuple[int, int]) -> set[str]:
    first, last = between
    return {test for line in range(first, last + 1) for test in lines.get(line, ())}


def measure(copy: Copy, builds: Path, folders: Sequence[str], jobs: int) -> TestMap:
    """Run the unit tests under coverage, once for each state of the code."""
    cache = builds / digest(copy.path) / "-".join(folders)
    data, report = cache / "coverage", cache / "report.json"
    if not report.exists():
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "coveragerc").write_text(
            f"[run]\nrelative_files = true\nsource = {','.join(folders)}\n"
        )
        ended = copy.run(
            [name for name in UNIT if (copy.path / name).exists()], MEASURE_LIMIT,
            *("--cov", "--cov-context=test", "--cov-report=", f"--cov-config={cache}/coveragerc"),
            *(("-n", str(jobs)) if jobs > 1 else ()),
            COVERAGE_FILE=str(data),
        )  # fmt: skip
        if not ended.seconds or not data.exists():
            log = copy.path.with_name("pytest.log").read_text(errors="replace")[-2000:]
            raise SystemExit(f"The unit tests could not be measured:\n{log}")
        report.write_text(json.dumps([dict(ended.seconds), list(ended.failed)]))
    seconds, failed = json.loads(report.read_text())
    imports = import_graph(copy.path, files(copy.path))
    return TestMap(_lines(data, seconds), seconds, imports, set(failed))


def named(copy: Copy, tests: Sequence[str]) -> TestMap:
    """These tests for every mutant, without a measurement of what they execute.

    Ends the program if one fails without a mutant, or if there is none.
    """
    ended = copy.run(tests, BASELINE_LIMIT, "-x")
    if ended.code != 0:
        why = f"{ended.failed[0]} fails" if ended.failed else "no test passes"
        raise SystemExit(f"{why} without a mutant: {' '.join(tests)}")
    seconds = sum(ended.seconds.values()) / len(tests)
    return TestMap(seconds=dict.fromkeys(tests, seconds), only=tests)


def _lines(data: Path, seconds: Mapping[str, float]) -> dict[str, dict[int, set[str]]]:
    """File -> line -> tests.

    What a fixture executes counts for all tests of the file: those after the first share one of
    the module, and their own measurement has nothing of it.
    """
    together = defaultdict[str, set[str]](set)
    for test in seconds:
        together[test.partition("::")[0]].add(test)
    recorded = coverage.CoverageData(str(data))
    recorded.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for file in recorded.measured_files():
        for line, contexts in recorded.contexts_by_lineno(file).items():
            executing = lines.setdefault(file, {}).setdefault(line, set())
            for context in contexts:
                test, _, phase = context.rpartition("|")
                executing |= {test} & seconds.keys()
                if phase == "setup":
                    executing |= together[test.partition("::")[0]]
    return lines
