"""A sample of the kills of what takes a snapshot; ``make chaos PART=snapshots`` has more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_a_request_is_one_query_one_export_and_one_manifest_whatever_is_killed(
    tmp_path: Path,
) -> None:
    """By the command of ``make chaos``, so that it is run as well."""
    written = tmp_path / "chaos.json"
    command = [sys.executable, "-m", "bench.chaos", "--quick", "--part=snapshots", "--seed=7"]
    done = subprocess.run(
        [*command, f"--json={written}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(written.read_text())
    found = report["details"]["snapshots, kills"]
    assert (found["points"], found["problems"]) == (6, [])
    assert found["kills"] >= 6
