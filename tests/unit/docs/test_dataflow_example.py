"""The example of docs/examples/dataflow runs here, in an environment of its own with Beam in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import SAMPLES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/examples/dataflow/README.md").read_text()
EXAMPLE = ROOT / "docs/examples/dataflow/pipeline.py"
PYTHON = ROOT / ".vt-local/beam/bin/python"
CSV = "survived,sex,age\n1,female,38\n0,male,\n0,male,22\n1,female,4\n"
PARQUET = """
import sys
from vertex_job import snapshot
import pyarrow.parquet as parquet
data = snapshot.open(sys.argv[1])
data.verify()
rows = [row for file in data.files for row in parquet.read_table(file.place).to_pylist()]
print(sorted(row["age"] for row in rows), data.manifest["rows"], len(data.files))
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SAMPLES / "lib")}
    return subprocess.run(
        [PYTHON, *arguments], env=environment, capture_output=True, text=True, timeout=250
    )


@pytest.fixture(autouse=True)
def _beam() -> None:
    if not PYTHON.exists():
        [command] = re.findall(r"^uv venv .*$", PAGE, re.MULTILINE)
        pytest.skip(f"Beam is not installed: {command}")


def test_the_pipeline_ends_in_a_snapshot_that_a_job_opens(tmp_path: Path) -> None:
    (tmp_path / "passengers.csv").write_text(CSV)
    output = tmp_path / "run-1"
    given = ("--input", tmp_path / "passengers.csv", "--output", output)
    done = run(EXAMPLE, *given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("3 rows in 2 files\n")
    assert run("-c", PARQUET, output).stdout == "[4.0, 22.0, 38.0] 3 2\n"
    # Without Beam and pyarrow as well: this process has neither.
    sys.path.insert(0, str(SAMPLES / "lib"))
    from vertex_job import snapshot

    assert [field["name"] for field in snapshot.open(str(output)).manifest["schema"]] == [
        "survived",
        "sex",
        "age",
    ]


def test_a_pipeline_that_fails_leaves_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "passengers.csv").write_text(CSV + "1,female,old\n")
    given = ("--input", tmp_path / "passengers.csv", "--output", tmp_path / "run-1")
    failed = run(EXAMPLE, *given)
    assert failed.returncode != 0
    assert "could not convert string to float: 'old'" in failed.stderr
    assert not (tmp_path / "run-1/manifest.json").exists()
