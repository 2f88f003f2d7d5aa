"""Measure from an edit of a script to its first line of log, and what ``vt run`` adds to a job.

    .venv/bin/python bench/run.py [--rounds N]

Three arms in turns: ``vt run train.py`` without a stack; ``vt local up`` (what ``make local`` runs)
of a stack whose one job is that script; and torchx, which starts it here (``local_cwd``), in an
environment of its own. Before each round the script is edited. The first two are also shown
less what the job takes from its creation to its start (queue, package, environment), which no
command changes. Exits 1 if ``vt run`` adds more than 5 s in the median.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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
#: What others run on this machine; installed for the measurement alone.
TORCHX: Final = "torchx==0.7.0"
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
        self.torchx_env = root / "torchx"
        self.number = 0
        self.added: dict[str, list[float]] = {"vt run": [], "vt local up": []}
        """Seconds less those between creation and start of the job, by arm and round."""
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

    def install_torchx(self) -> bool:
        """Whether it could be installed."""
        uv = str(VT.with_name("uv"))
        python = str(self.torchx_env / "bin" / "python")
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(self.torchx_env)]
        install = [uv, "pip", "install", "--quiet", "--python", python, TORCHX]
        return not any(subprocess.run(each, check=False).returncode for each in (make, install))

    def run(self) -> float:
        """``vt run`` of the script."""
        return self._job("vt run", self.plain, ["run", "train.py"])

    def up(self) -> float:
        """``vt local up`` of the stack."""
        return self._job("vt local up", self.stack, ["local", "up"])

    def torchx(self) -> float:
        """``torchx run`` of the script."""
        self._edit(self.plain)
        words = ["run", "--scheduler", "local_cwd", "utils.python", "--script", "train.py"]
        began = time.time()
        command = subprocess.Popen(
            [str(self.torchx_env / "bin" / "torchx"), *words],
            cwd=self.plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert command.stdout is not None
        if not any(f"first line {self.number}" in line for line in command.stdout):
            sys.exit("torchx did not run the script")
        line_at = time.time()
        command.communicate()
        return line_at - began

    def _edit(self, folder: Path) -> None:
        self.number += 1
        (folder / "train.py").write_text(SCRIPT.format(number=self.number))

    def _job(self, arm: str, folder: Path, words: list[str]) -> float:
        self._edit(folder)
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
        own = _seconds(job.start_time) - _seconds(job.create_time)
        self.added[arm].append(line_at - began - own)
        return line_at - began

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


def _show(name: str, verb: str, taken: Sequence[float]) -> None:
    shown = " ".join(f"{seconds:.2f}" for seconds in taken)
    print(f"{name}: {verb}{statistics.median(taken):.2f} s in the median ({shown})")


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
            arms = {"vt run": bench.run, "vt local up": bench.up}
            if bench.install_torchx():
                arms["torchx run"] = bench.torchx
            times = in_turns(arms, options.rounds, 1)
        finally:
            subprocess.run([str(VT), "local", "down"], env=bench.env, cwd=folder, check=False)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"from an edit to the first line, in seconds (load of the machine {load}):")
    for name, taken in times.items():
        _show(name, "", taken)
    added = {name: taken[-options.rounds :] for name, taken in bench.added.items()}
    for name, taken in added.items():
        _show(name, "adds ", taken)
    found = statistics.median(added["vt run"])
    print(f"vt run adds {found:.2f} s (at most {GOAL:g})")
    return 0 if found <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
