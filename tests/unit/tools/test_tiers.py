"""The session of ``make test``: the order of files, and what it tells of each tier."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT
from tools.tiers import (
    ALL_STORIES,
    KINDS,
    LONG,
    NIGHTLY,
    STORIES,
    file_of,
    in_turns,
    left_out,
)  # fmt: skip

#: Each test notes that it has run.
TEST = """\
import os, pathlib
def test_first(): pathlib.Path("order").open("a").write("{name} ")
def test_second(): {second}
"""
FILES = {
    "tests/unit/test_short.py": "raise AssertionError",
    "tests/containers/test_image.py": "assert os.path.exists('ready')",
    "tests/e2e/test_a.py": "pass",
    "tests/e2e/test_long.py": "import time; time.sleep(0.5); os.system('(sleep 1; >ready) &')",
}


def run(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tools.tiers", *options, "tests"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "VT_TESTS_READY": "ready"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_every_story_has_a_kind_and_each_kind_runs_at_every_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for tier in STORIES
        for path in ROOT.glob(f"tests/{tier}/test_*.py")
    }
    named = [file_of(story) for stories in KINDS.values() for story in stories]
    assert sorted(named) == sorted(files - {"tests/e2e/test_bench.py"})  # `make bench`
    monkeypatch.delenv(ALL_STORIES, raising=False)
    later = {*left_out()}
    assert all((ROOT / file).is_file() for file in later)
    idle = [kind for kind, stories in KINDS.items() if later.issuperset(map(file_of, stories))]
    assert idle == [*NIGHTLY]
    monkeypatch.setenv(ALL_STORIES, "all")
    assert left_out() == []


def test_short_files_go_between_long_ones_and_end_the_run() -> None:
    long = {f"long{number}": LONG + number for number in range(10)}
    short = {f"short{number:02}": 1.0 + number % 5 for number in range(60)}
    turns = in_turns({**short, **long})
    assert sorted(turns) == sorted({**long, **short})
    assert [file for file in turns if file in long] == sorted(long, key=lambda file: -long[file])
    places = [number for number, file in enumerate(turns) if file in long]
    assert places[0] == 0
    assert all(2 <= after - before <= 9 for before, after in itertools.pairwise(places))
    assert sum(short[file] for file in turns[places[-1] :] if file in short) > 0.25 * sum(
        short.values()
    )
    assert in_turns(short) == sorted(short, key=lambda file: -short[file])
    assert in_turns(long) == sorted(long, key=lambda file: -long[file])
    assert in_turns({}) == []


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ALL_STORIES, "all")
    (tmp_path / "pytest.ini").touch()
    for file, second in FILES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(TEST.format(name=Path(file).stem, second=second))
    (tmp_path / "tests/teams").mkdir()
    (tmp_path / "tests/teams/test_broken.py").write_text("import nothing_of_this_name")
    return tmp_path


def test_all_tiers_run_after_failures_and_remember_what_each_file_took(tree: Path) -> None:
    options = ("-n", "1", "--dist", "loadfile", "--no-loadscope-reorder")
    told = run(tree, *options, "--continue-on-collection-errors")
    assert re.findall(r"^(\w+) +\d+ s  (.*)", told, re.MULTILINE) == [
        ("containers", "2 passed"),
        ("e2e", "4 passed"),
        ("teams", "1 failed"),
        ("unit", "1 failed, 1 passed"),
    ]
    assert "passed: containers e2e\nFAILED: teams unit\n" in told
    run(tree, *options, "--continue-on-collection-errors")
    order = (tree / "order").read_text().split()
    # Before anything is known, by tier, short ones between; then by what each took.
    assert order[:4] == ["test_a", "test_short", "test_long", "test_image"]
    assert order[4] == "test_long"
