"""Runs a small part of ``make chaos`` by its own command, so that the command is tested too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fixture_project import ROOT


def quick_report(part: str, folder: Path) -> dict[str, Any]:
    """Return the report of ``make chaos QUICK=1 PART=part``, which must end without problems."""
    written = folder / "chaos.json"
    command = [sys.executable, "-m", "bench.chaos", "--quick", f"--part={part}", "--seed=7"]
    done = subprocess.run(
        [*command, f"--json={written}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(written.read_text())
