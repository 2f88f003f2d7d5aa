"""Tests ``make bench`` at its smallest sizes, which yield no meaningful figures.

``make chaos`` and ``make mutants`` have tests of their own: ``tests/chaos``, ``tests/mutants``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT, clean_environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
#: Script -> its smallest measurement, and what it says at its end.
SMALLEST = {
    "package": ("--rounds=1", "components minus pulumi_gcp alone"),
    "review": ("--rounds=1 --jobs=2 --buckets=2", "ratio of the medians"),
    "submit": ("--rounds=1 --sizes=2", "minutes"),
}


def test_every_benchmark_has_a_smallest_size() -> None:
    scripts = {file.stem for file in (ROOT / "bench").glob("*.py")}
    assert scripts == SMALLEST.keys() | {"chaos"}  # tests/chaos tests the latter


@pytest.mark.parametrize("script", SMALLEST)
def test_each_benchmark_completes(script: str, tmp_path: Path) -> None:
    options, end = SMALLEST[script]
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / f"{script}.py", *options.split()],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Goals are for machines that do nothing else: 1 says that one is missed.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert end in done.stdout, done.stdout + done.stderr
