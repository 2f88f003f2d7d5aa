"""Which tests execute a line, as a run under coverage has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import coverage
import pytest

from bench.mutation.selection import NEAR_BUDGET, Selection, TestMap, _Run
from bench.mutation.sites import Mutant, mutants

SHARED, OTHER = "tests/unit/test_shared.py", "tests/unit/test_other.py"
ONE, TWO, APART = f"{SHARED}::test_one", f"{SHARED}::test_two", f"{OTHER}::test_apart"


def test_what_a_fixture_executes_counts_for_every_test_of_its_file(tmp_path: Path) -> None:
    recorded = coverage.CoverageData(str(tmp_path / "coverage"))
    for context, lines in (
        (f"{ONE}|setup", [1]), (f"{ONE}|run", [2]), (f"{TWO}|run", [3]), (f"{APART}|setup", [3]),
        (f"{APART}|teardown", [4]), ("", [5]),
    ):  # fmt: skip
        recorded.set_context(context)
        recorded.add_lines({"infra/x.py": lines})
    recorded.write()
    times = {"seconds": {ONE: 1.0, TWO: 2.0, APART: 3.0}, "failed": [TWO, APART]}
    (tmp_path / "durations.json").write_text(json.dumps(times))
    every, some = TestMap({}, {}, {}), TestMap({}, {}, {})
    run = _Run(tmp_path, {SHARED: "", OTHER: ""})
    run.add_to(every, {SHARED, OTHER})
    assert every.lines == {
        "infra/x.py": {1: {ONE, TWO}, 2: {ONE}, 3: {TWO, APART}, 4: {APART}, 5: set()}
    }
    assert (every.seconds, every.flaky) == (times["seconds"], {TWO, APART})
    run.add_to(some, {SHARED})
    assert some.lines == {"infra/x.py": {1: {ONE, TWO}, 2: {ONE}, 3: {TWO}, 4: set(), 5: set()}}
    assert (some.seconds, some.flaky) == ({ONE: 1.0, TWO: 2.0}, {TWO})


TABLE: Final = "infra/table.py"
HOLDS, MANY = "tests/unit/test_pages.py::test_holds", "tests/unit/test_cases.py::test_many"
CASES = [f"{MANY}[{n}]" for n in range(1000)]


def _tests_of(mutant: Mutant, seconds: float) -> Selection:
    """What is run against a mutant of a table that all tests import and none executes.

    ``seconds`` is the time of the test that holds the table, the farthest of them.
    """
    imports = {
        "tests/unit/test_cases.py": {"infra/all.py"},
        "tests/unit/test_pages.py": {"infra/pages.py"},
        "infra/pages.py": {"infra/all.py"},
        "infra/all.py": {TABLE},
        TABLE: set(),
    }
    return TestMap({}, dict.fromkeys(CASES, 1.0) | {HOLDS: seconds}, imports).select(mutant)


@pytest.mark.parametrize("seconds", [1.0, 200.0])
def test_a_thousand_cases_leave_room_for_the_test_that_holds_a_table_made_at_import(seconds):
    (mutant,) = mutants(TABLE, b"LIMIT = 8\n")
    chosen = _tests_of(mutant, seconds).far
    assert chosen[:2] == [CASES[0], HOLDS]
    assert len(chosen) == 1 + int(NEAR_BUDGET - seconds)
