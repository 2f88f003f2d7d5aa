"""Which tests execute a line, as a run under coverage has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import coverage
import pytest

from bench.mutation.selection import NEAR_BUDGET, TestMap, _Run
from bench.mutation.sites import mutants

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


RULES: Final = "infra/vertex_training/customjob/rules.py"
HOLDS: Final = "tests/unit/infra/customjob/test_pages.py::test_holds"
CASES: Final = [f"tests/unit/vt/test_cases.py::test_many[{n:03}]" for n in range(1000)]


@pytest.mark.parametrize("source", [b"LIMIT = 8\n", b"def limit():\n    return 8\n"])
def test_a_thousand_cases_elsewhere_leave_room_for_a_test_beside_the_module(source: bytes) -> None:
    mutant = mutants(RULES, source)[-1]
    imports = {
        "tests/unit/vt/test_cases.py": {RULES},
        "tests/unit/infra/customjob/test_pages.py": {"infra/pages.py"},
        "infra/pages.py": {RULES},
        RULES: set(),
    }
    executing = {2: {HOLDS, *CASES}}
    seconds = dict.fromkeys(CASES, 1.0) | {HOLDS: 100.0}
    chosen = TestMap({RULES: executing}, seconds, imports).select(mutant).near
    assert chosen == [HOLDS, *CASES[: int(NEAR_BUDGET) - 100]]


def test_who_holds_a_table_made_at_import_has_as_much_time_as_who_executes_a_line() -> None:
    (mutant,) = mutants(RULES, b"LIMIT = 8\n")
    imports = {"tests/unit/vt/test_cases.py": {"cli/x.py"}, "cli/x.py": {RULES}, RULES: set()}
    chosen = TestMap({}, dict.fromkeys(CASES, 1.0), imports).select(mutant)
    assert (chosen.near, chosen.far) == ([], CASES[: int(NEAR_BUDGET)])


def test_the_file_named_after_the_module_goes_first_then_that_named_after_its_package() -> None:
    module = "infra/vertex_training/customjob/rules/network.py"
    of_module, of_package, beside = (
        f"tests/unit/infra/customjob/{name}.py::test"
        for name in ("rules/test_network", "test_rules", "rules/test_a")
    )
    near = {beside, of_module, of_package}
    found = TestMap({module: {2: near}}, dict.fromkeys(near, 1.0), {})
    mutant = mutants(module, b"def limit():\n    return 8\n")[-1]
    assert found.select(mutant).near == [of_module, of_package, beside]
