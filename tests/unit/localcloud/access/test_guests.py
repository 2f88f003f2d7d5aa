"""Whether a caller is a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4] / "localcloud"
PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
from localgcp.access import guests
before = "psutil" in sys.modules
print(before, guests.holds(("127.0.0.1", 1), ("127.0.0.1", 2)), "psutil" in sys.modules)
"""


def test_while_no_job_runs_nobody_is_one_and_no_process_is_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "False"]
