"""Measure what ``vt run`` adds to a job: from an edit of a script to its first line of log.

    .venv/bin/python bench/run.py [--rounds N]

Two arms in turns, in one local cloud: ``vt run train.py`` without a stack, and ``vt local up`` of a
stack whose one job is that script. Before each round the script is edited. Each arm is timed to the
script's first line, less what the job takes from its creation to its start (queue, package,
environment), which no command changes. Exits 1 if ``vt run`` adds more than 5 s in the median.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Final

from arms import in_turns

from localgcp.home import Home
from localgcp.runner.joblog import log_path
from localgcp.vertex.records import JobRecord, JobTable

VT: Final = Path(sys.executable).with_name("vt")
#: Seconds that ``vt run`` may add to the job's own start.
GOAL: Final = 5.0
SCRIPT: Final = "print('first line', {number}, flush=True)\n"
STACK: Final = """\
config:
  gcp:project: local-bench
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:buckets: {{artifacts: {{forceDestroy: true}}}}
  vertex-training:serviceAccounts: {{trainer: {{writes: [artifacts]}}}}
  vertex-training:packages: {{train: {{path: train.py}}}}
  vertex-training:jobs: {{train: {{file: train.yaml}}}}
"""
JOB: Final = """\
serviceAccount: ${serviceAccounts.trainer}
scheduling: {timeout: 600s}
workerPoolSpecs:
  - replicaCount: 1
    machineSpec: {machineType: n1-standard-4}
    pythonPackageSpec:
      executorImageUri: us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest
      packageUris: ["${packages.train}"]
      pythonModule: train
"""


class Bench:
    """A folder without a stack, and one with a stack; both use one local cloud."""

    def __init__(self, root: Path) -> None:
        from localgcp.inventory.store import project_number

        self.home = Home(root / "home", root)
        # Not those of a local shell: they lead to its local cloud.
        outer = ("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST")
        self.env = {key: value for key, value in os.environ.items() if key not in outer}
        self.env["VT_LOCAL_HOME"] = str(self.home.root)
        self.plain, self.stack = root / "plain", root / "stack"
        self.number = 0
        for folder in (self.plain, self.stack):
            folder.mkdir()
        runtime = f"{{name: python, options: {{virtualenv: {sys.prefix}}}}}"
        (self.stack / "Pulumi.yaml").write_text(f"name: bench\nruntime: {runtime}\n")
        (self.stack / "__main__.py").write_text(
            "from vertex_training import run\n\nrun(__file__)\n"
        )
        config = STACK.format(number=project_number("local-bench"))
        (self.stack / "Pulumi.local.yaml").write_text(config)
        (self.stack / "train.yaml").write_text(JOB)

    def run(self) -> float:
        """Seconds that ``vt run`` adds."""
        return self._added(self.plain, ["run", "train.py"])

    def up(self) -> float:
        """Seconds that ``vt local up`` adds."""
        return self._added(self.stack, ["local", "up"])

    def _added(self, folder: Path, words: list[str]) -> float:
        self.number += 1
        (folder / "train.py").write_text(SCRIPT.format(number=self.number))
        known = {each.job_id for each in self._jobs()}
        began = time.time()
        with tempfile.TemporaryFile("w+") as told:
            command = subprocess.Popen(
                [str(VT), *words], cwd=folder, env=self.env, stdout=told, stderr=subprocess.STDOUT
            )
            while (line_at := self._first_line(known)) is None:
                if command.poll():
                    told.seek(0)
                    sys.exit(f"vt {' '.join(words)}: {told.read()[-3000:]}")
                time.sleep(0.02)
            command.wait()
        [job] = [each for each in self._jobs() if each.job_id not in known]
        assert job.start_time
        return line_at - began - (_seconds(job.start_time) - _seconds(job.create_time))

    def _first_line(self, known: set[str]) -> float | None:
        """When the script's line was there, or None."""
        for job in self._jobs():
            path = log_path(self.home, job.job_id, "workerpool0-0")
            written = job.job_id not in known and path.exists()
            if written and f"first line {self.number}" in path.read_text():
                return time.time()
        return None

    def _jobs(self) -> list[JobRecord]:
        return JobTable(self.home.database).list() if self.home.database.exists() else []


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def main() -> int:
    """Exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-run-") as folder:
        bench = Bench(Path(folder))
        try:
            times = in_turns({"vt run": bench.run, "vt local up": bench.up}, options.rounds, 1)
        finally:
            subprocess.run([str(VT), "local", "down"], env=bench.env, cwd=folder, check=False)
    for name, taken in times.items():
        shown = " ".join(f"{seconds:.2f}" for seconds in taken)
        print(f"{name}: adds {statistics.median(taken):.2f} s in the median ({shown})")
    found = statistics.median(times["vt run"])
    print(f"vt run adds {found:.2f} s (at most {GOAL:g})")
    return 0 if found <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
