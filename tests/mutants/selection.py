"""Which tests can notice a mutant: those that execute its line, those near it, golden tests."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage

from tests.mutants.copies import Copy, digests, files
from tests.mutants.recorder import VARIABLE
from tests.mutants.sites import Mutant
from tools.quick import GOLDEN, distances, import_graph

#: Seconds of tests, as measured without a mutant: those that execute the line, and those near it.
#: A rule of job files is executed by a thousand cases, of which two hold it: nearly all must run;
#: no test executes the line of a table that an import makes, and who holds it may be far away.
NEAR_BUDGET: Final = 240.0
FAR_BUDGET: Final = 60.0
#: Seconds for named tests without a mutant.
BASELINE_LIMIT: Final = 900.0
#: Tests without an engine; those of policies are beside the tests of the pack.
UNIT: Final = ("tests/unit/", "tests/contract/", "tests/security/", "tests/policy/test_policies.py")
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
    only: Sequence[str] = ()
    """Tests that judge every mutant, if nothing was measured."""

    def select(self, mutant: Mutant) -> Selection:
        """The tests for a mutant."""
        if self.only:
            return Selection(self.only, (), ())
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
        return Selection(
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
        """The tests that fit: the file named after the module or its package, then the folders.

        Among those the nearest by imports, and the quickest, go first.
        """
        module, folders = Path(path), set(Path(path).parent.parts)
        mirrors = [f"test_{module.stem}.py", f"test_{module.parent.name}.py"]

        def order(test: str) -> tuple[int, int, int, float, str]:
            file = test.partition("::")[0]
            name, beside = Path(file).name, len(folders.intersection(Path(file).parent.parts))
            mirror = mirrors.index(name) if name in mirrors else len(mirrors)
            distance = far_from.get(file, len(far_from))
            return mirror, -beside, distance, self.seconds.get(test, 0.0), test

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
    """Run the unit tests under coverage that were not yet, as they are, with this product code.

    ``builds`` has a folder for each product code, and there one for each run.
    """
    code, tests = digests(copy.path, folders)
    tests = {name: digest for name, digest in tests.items() if name.startswith(UNIT)}
    cache = builds / code
    cache.mkdir(parents=True, exist_ok=True)
    new = set(tests.items()).difference(*(run.tests.items() for run in _runs(cache)))
    if new:
        _measure(copy, cache / f"{len(_runs(cache))}", dict(new), folders, jobs)
    found = TestMap({}, {}, import_graph(copy.path, files(copy.path)))
    for run in _runs(cache):
        run.add_to(found, {name for name, _ in run.tests.items() & tests.items()})
    return found


def named(copy: Copy, tests: Sequence[str]) -> TestMap:
    """These tests for every mutant, without a measurement of what they execute.

    Ends the program if one fails without a mutant, or if there is none.
    """
    ended = copy.run(tests, BASELINE_LIMIT)
    if ended.code != 0:
        why = f"{ended.failed} fails" if ended.failed else "no test passes"
        raise SystemExit(f"{why} without a mutant: {' '.join(tests)}")
    seconds = ended.seconds / len(tests)
    return TestMap({}, dict.fromkeys(tests, seconds), {}, only=tests)


@dataclass(frozen=True, slots=True)
class _Run:
    """A folder with what one run of tests under coverage has found."""

    folder: Path
    tests: dict[str, str]
    """File -> digest, as it ran."""

    def add_to(self, found: TestMap, chosen: set[str]) -> None:
        """Add the tests of the chosen files.

        What a fixture executes counts for all tests of the file: those after the first share one of
        the module, and their own measurement has nothing of it.
        """
        times = json.loads((self.folder / "durations.json").read_text())
        kept = {test for test in times["seconds"] if test.partition("::")[0] in chosen}
        found.seconds |= {test: times["seconds"][test] for test in kept}
        found.flaky |= kept & set(times["failed"])
        together = defaultdict[str, set[str]](set)
        for test in kept:
            together[test.partition("::")[0]].add(test)
        recorded = coverage.CoverageData(str(self.folder / "coverage"))
        recorded.read()
        for file in recorded.measured_files():
            lines = found.lines.setdefault(file, {})
            for line, contexts in recorded.contexts_by_lineno(file).items():
                executing = lines.setdefault(line, set())
                for context in contexts:
                    test, _, phase = context.rpartition("|")
                    if test in kept:
                        executing.add(test)
                    if phase == "setup":
                        executing |= together[test.partition("::")[0]]


def _runs(cache: Path) -> list[_Run]:
    """The runs that came to their end, in their order."""
    files = sorted(cache.glob("*/tests.json"), key=lambda file: int(file.parent.name))
    return [_Run(file.parent, json.loads(file.read_text())) for file in files]


def _measure(
    copy: Copy, folder: Path, tests: dict[str, str], folders: Sequence[str], jobs: int
) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was ended
    folder.mkdir()
    config, data, times = (folder / name for name in ("coveragerc", "coverage", "durations.json"))
    config.write_text(CONFIG.format(folders=",".join(folders)))
    command = [
        *(sys.executable, "-m", "pytest", "-q", *sorted(tests), "-p", "tests.mutants.recorder"),
        *("-p", "no:cacheprovider", "--cov", "--cov-context=test", "--cov-report="),
        *(f"--cov-config={config}", *(("-n", str(jobs)) if jobs > 1 else ())),
    ]
    environment = copy.environment | {VARIABLE: str(times), "COVERAGE_FILE": str(data)}
    done = subprocess.run(command, cwd=copy.path, env=environment, capture_output=True)
    (folder / "pytest.log").write_bytes(done.stdout + done.stderr)
    if not times.exists() or not data.exists():
        raise SystemExit(f"The unit tests could not be measured: see {folder / 'pytest.log'}")
    (folder / "tests.json").write_text(json.dumps(tests))
