"""Which tests execute a line, as a run under coverage has it."""

from __future__ import annotations

import json
from pathlib import Path

import coverage

from bench.mutation.selection import TestMap, _Run

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
