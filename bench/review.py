"""Measure the additional time of a review compared with its preview, in a large stack.

    .venv/bin/python bench/review.py [--rounds N] [--jobs N] [--buckets N]

Previews and reviews a stack of a thousand resources, in turns and with an empty state. Exits with 1
if the ratio of the medians exceeds 1.10.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from package import in_turns, ratio, run

from vertex_training.naming import local_project_number
from vertex_training_cli.engine import stacks

ROOT: Final = Path(__file__).resolve().parents[1]
PROJECT_ID: Final = "local-bench"
MAX_RATIO: Final = 1.10
FORMATS: Final = ("md", "html", "json")

JOB: Final = """\
serviceAccount: ${{serviceAccounts.trainer}}
baseOutputDirectory:
  outputUriPrefix: ${{buckets.artifacts}}/fine-tune-{n}/${{job.requestId}}
scheduling: {{timeout: 36000s}}
workerPoolSpecs:
  - replicaCount: 1
    machineSpec: {{machineType: g2-standard-8, acceleratorType: NVIDIA_L4, acceleratorCount: 1}}
    containerSpec:
      imageUri: ${{images.trainer}}
      args: ["--data=${{buckets.{data}}}/train", "--seed={n}"]
"""
PROJECT: Final = """\
name: vertex-training
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
"""
STACK: Final = f"""\
config:
  gcp:project: {PROJECT_ID}
  gcp:region: us-central1
  vertex-training:projectNumber: "{local_project_number(PROJECT_ID)}"
  vertex-training:images:
    trainer: {{digest: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}
"""


def make_project(folder: Path, count: int, data: int) -> None:
    """Create a project with ``count`` jobs. One account reads all buckets and runs all jobs."""
    (folder / "jobs").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text(PROJECT)
    buckets = [f"data-{n:03}" for n in range(data)]
    jobs = [f"job-{n:03}" for n in range(count)]
    for n, name in enumerate(jobs):
        (folder / "jobs" / f"{name}.yaml").write_text(JOB.format(n=n, data=buckets[n % data]))
    config = {
        "buckets": {"artifacts": {}} | {name: {} for name in buckets},
        "serviceAccounts": {"trainer": {"reads": buckets, "writes": ["artifacts"]}},
        "jobs": {name: {"file": f"jobs/{name}.yaml"} for name in jobs},
    }
    lines = [f"  vertex-training:{key}: {json.dumps(value)}\n" for key, value in config.items()]
    (folder / "Pulumi.bench.yaml").write_text(STACK + "".join(lines))
    shutil.copy(ROOT / "__main__.py", folder)
    (folder / ".venv").symlink_to(sys.prefix)


def bench(folder: Path, chosen: argparse.Namespace) -> bool:
    """Run preview and review in turns. Return True if the ratio is within the limit."""
    project = folder / "project"
    make_project(project, chosen.jobs, chosen.buckets)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    env = kept | {"VT_LOCAL_HOME": str(folder / "home")}
    vt = str(Path(sys.executable).parent / "vt")
    review = [vt, "review", "--stack", "bench"]
    for ending in FORMATS:
        review += ["-o", str(folder / f"report.{ending}")]
    run(review, project, env)  # creates the stack, and fills Python's bytecode cache
    first = json.loads((folder / "report.json").read_text())
    count = len(first["changes"]) + len(first["jobs"]) + len(first["rights"]["gained"])
    print(f"{count:,} resources, {len(first['jobs'])} of them jobs, all of them new")
    pulumi = str(folder / "home" / "bin" / "pulumi")
    plain = [pulumi, "preview", "--stack", "bench", "--json", "--non-interactive"]
    # Both commands have the environment of the preview in `vt review`: its state and plugins.
    os.environ["VT_LOCAL_HOME"] = env["VT_LOCAL_HOME"]
    target = stacks.find_unchecked(project, "bench").preview_target(offline=True)
    inside = {**env, **target.env}
    arms = {
        "preview": lambda: run(plain, project, inside)[0],
        "review": lambda: run(review, project, env)[0],
    }
    return ratio(in_turns(arms, chosen.rounds), "review", "preview", MAX_RATIO)


def main() -> int:
    """Parse the command line, and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement")
    parser.add_argument("--jobs", type=int, default=200, help="number of jobs in the stack")
    parser.add_argument("--buckets", type=int, default=395, help="number of data buckets")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="bench-review-") as folder:
        return 0 if bench(Path(folder), chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
