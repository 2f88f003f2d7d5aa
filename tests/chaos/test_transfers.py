"""A sample of the kills of ``vt data``; ``make chaos PART=data`` has 10,000 files and 2 GiB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_nothing_is_half_there_after_kills_and_nothing_that_arrived_is_lost(tmp_path: Path) -> None:
    """By the command of ``make chaos``, so that it is run as well."""
    written = tmp_path / "chaos.json"
    command = [sys.executable, "-m", "bench.chaos", "--quick", "--part=data", "--seed=7"]
    done = subprocess.run(
        [*command, f"--json={written}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(written.read_text())
    transfers = [what for what, _ in report["rows"] if what != "minutes"]
    assert [what.split()[0] for what in transfers] == ["push", "pull"] * 2
    assert report["problems"] == []
