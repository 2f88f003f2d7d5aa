"""A sample of the kills of models and endpoints; ``make chaos PART=serving`` has 200 of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_no_request_is_lost_while_those_who_change_an_endpoint_are_killed(tmp_path: Path) -> None:
    """By the command of ``make chaos``, so that it is run as well."""
    written = tmp_path / "chaos.json"
    command = [sys.executable, "-m", "bench.chaos", "--quick", "--part=serving", "--seed=7"]
    done = subprocess.run(
        [*command, f"--json={written}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(written.read_text())
    assert report["problems"] == []
    details = report["details"]
    assert details["serving, random kills"]["kills"] >= 4
    for part in ("serving, random kills", "serving, 2 operators at once"):
        assert details[part]["looks"] > 100
        assert details[part]["answered"] > 20
