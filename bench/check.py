"""Measure how fast job files are checked, and what checking adds to a preview.

    .venv/bin/python bench/check.py [--rounds N] [--only files|preview] [--files N] [--jobs N]

Prints figures and exits 1 if a bound is not held:

- one file: processor time of ``vt check FILE``, at most 0.5 s, and of its parts
- 1,000 files: files a second and peak memory of one ``vt check``
- a stack with 50 jobs: ``pulumi preview`` against the same stack with validation switched off,
  in turns in one run; the ratio of the medians is at most 1.10

No switch turns validation off in the program. The second stack of the comparison has an entry
point of its own, written here, which makes the same requests with PyYAML and nothing else.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arms import in_turns, ratio, run

ROOT: Final = Path(__file__).resolve().parents[1]
MAX_SECONDS: Final = 0.5
MAX_RATIO: Final = 1.10

#: Typical jobs: with comments, several arguments and variables; one and two pools.
SINGLE: Final = """\
# yaml-language-server: $schema=job.schema.json
# Fine-tune number {n} on one GPU.
displayName: fine-tune-{n}
labels: {{team: ml, kind: fine-tune}}
jobSpec:
  serviceAccount: ${{serviceAccounts.trainer}}
  baseOutputDirectory:
    outputUriPrefix: ${{buckets.artifacts}}/fine-tune-{n}/${{job.requestId}}
  scheduling: {{timeout: 36000s, strategy: SPOT}}
  workerPoolSpecs:
    - replicaCount: 1
      machineSpec:
        machineType: g2-standard-8
        acceleratorType: NVIDIA_L4
        acceleratorCount: 1
      diskSpec: {{bootDiskType: pd-ssd, bootDiskSizeGb: 200}}
      containerSpec:
        imageUri: ${{images.trainer}}
        command: [python, -m, trainer.task]
        args:
          - --train=${{buckets.data}}/train/*.parquet
          - --learning-rate=0.000{n}
          - --epochs=3
        env:
          - {{name: RUN_NUMBER, value: "{n}"}}
          - {{name: LOG_LEVEL, value: info}}
"""
DOUBLE: Final = """\
# yaml-language-server: $schema=job.schema.json
# Data-parallel training number {n}: one primary replica and three workers.
serviceAccount: ${{serviceAccounts.trainer}}
baseOutputDirectory:
  outputUriPrefix: ${{buckets.artifacts}}/parallel-{n}/${{job.requestId}}
scheduling: {{timeout: 86400s}}
workerPoolSpecs:
  - &pool
    replicaCount: 1
    machineSpec:
      machineType: a2-highgpu-8g
      acceleratorType: NVIDIA_TESLA_A100
      acceleratorCount: 8
    containerSpec: &task
      imageUri: ${{images.trainer}}
      command: [torchrun, --nproc-per-node=8, -m, trainer.task]
      args: ["--data=${{buckets.data.mount}}/shards", "--steps={n}000"]
      env:
        - {{name: NCCL_DEBUG, value: WARN}}
  - <<: *pool
    replicaCount: 3
"""
PROJECT: Final = """\
name: vertex-training
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
"""
STACK: Final = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:buckets: {data: {}, artifacts: {}}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts]}
  vertex-training:images:
    trainer: {digest: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
  vertex-training:jobs:
"""
UNCHECKED: Final = '''\
"""The entry point without validation: PyYAML, references, JSON, and nothing else."""

import hashlib
import runpy
from pathlib import Path

import yaml

from vertex_training.customjob.request import job_file as spec
from vertex_training.stack import Stack
from vertex_training.customjob.request.references import resolve


def check_jobs(stack, shown=str):
    results = {}
    for key, job in stack.settings.jobs.items():
        who = stack.submission(key, job.run)
        text = (stack.root / job.file).read_text()
        request_id = hashlib.sha256(text.encode()).hexdigest()[:20]
        known = {**stack.references, "job.name": key, "job.run": "1", "job.requestId": request_id}
        message = yaml.load(resolve(text, known), Loader=yaml.CSafeLoader)
        message = message if "jobSpec" in message else {"jobSpec": message}
        message.setdefault("displayName", f"{stack.settings.stack}-{key}")
        body = spec.canonical(message)
        request = spec.JobRequest(who, request_id, body, frozenset(), ())
        results[key] = spec.JobFileResult(request, (), ())
    return results


Stack.check_jobs = check_jobs
runpy.run_path(str(Path(__file__).with_name("entry.py")))
'''


#: The command as a shell starts it.
COMMAND: Final = (
    "import sys; sys.argv = ['vt', *sys.argv[1:]]; from vertex_training_cli.cli import app; app()"
)
#: What a check is made of, and other commands that a person waits for: program and arguments.
PARTS: Final = {
    "Python alone": ("pass", ()),
    "import of the command line": ("import vertex_training_cli.cli", ()),
    "import of what checks": ("import vertex_training_cli.check.checking", ()),
    "vt check FILE": (COMMAND, ("check", "jobs/job-0001.yaml")),
    "vt check FILE --all (with the parser)": (COMMAND, ("check", "jobs/job-0001.yaml", "--all")),
    "vt --help": (COMMAND, ("--help",)),
}


def write_jobs(folder: Path, count: int) -> list[Path]:
    """``count`` typical job files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"job-{n:04}.yaml" for n in range(count)]
    for n, file in enumerate(files):
        file.write_text((SINGLE if n % 2 else DOUBLE).format(n=n + 1), encoding="utf-8")
    return files


def vt_check(arguments: list[str], cwd: Path) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak memory in MB of one ``vt check``."""
    return of_python(COMMAND, ["check", *arguments], cwd)


def of_python(code: str, arguments: list[str], cwd: Path) -> tuple[float, float, float]:
    """The same figures of a program in Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A process in between, so that the peak is of this child and of no earlier one.
    probe = (
        "import resource, subprocess, sys; r = subprocess.run(sys.argv[1:], stdout=subprocess."
        "DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); "
        "sys.exit(r.returncode)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", probe, sys.executable, "-c", code, *arguments],
        cwd=cwd, text=True, capture_output=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{arguments} exited with {done.returncode}:\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, int(done.stdout) / 1024


def bench_files(folder: Path, rounds: int, files: int) -> bool:
    """One file and many."""
    write_jobs(folder / "jobs", files)
    vt_check(["jobs/job-0001.yaml"], folder)  # fills Python's bytecode cache
    ones = [vt_check(["jobs/job-0001.yaml"], folder) for _ in range(rounds)]
    used = statistics.median(one[1] for one in ones)
    print(f"one file: {used:.2f} s of processor time, median of {rounds} (at most {MAX_SECONDS})")
    for name, (code, arguments) in PARTS.items():
        least = min(of_python(code, list(arguments), folder)[1] for _ in range(rounds))
        print(f"  {name}: {least:.2f} s of processor time, least of {rounds}")
    seconds, _, memory = vt_check(["jobs"], folder)
    print(f"{files:,} files: {seconds:.2f} s, {files / seconds:,.0f} files/s, peak {memory:.0f} MB")
    return used <= MAX_SECONDS


def make_project(folder: Path, count: int, *, checked: bool) -> None:
    """A project with ``count`` jobs in ``folder``."""
    write_jobs(folder / "jobs", count)
    (folder / "Pulumi.yaml").write_text(PROJECT)
    jobs = "".join(f"    job-{n:04}: {{file: jobs/job-{n:04}.yaml}}\n" for n in range(count))
    (folder / "Pulumi.bench.yaml").write_text(STACK + jobs)
    (folder / ".venv").symlink_to(sys.prefix)
    entry = (ROOT / "__main__.py").read_text()
    (folder / "entry.py").write_text(entry)
    (folder / "__main__.py").write_text(entry if checked else UNCHECKED)


def bench_preview(folder: Path, rounds: int, jobs: int) -> bool:
    """The same preview with and without validation, in turns."""
    env = pulumi_environment(folder)
    created: set[str] = set()

    def arm(name: str) -> Callable[[], float]:
        project, backend = folder / name, folder / f"state-{name}"
        make_project(project, jobs, checked=name == "checked")
        backend.mkdir()
        arms_env = env | {"PULUMI_BACKEND_URL": f"file://{backend}"}
        run(["pulumi", "stack", "init", "bench", "--non-interactive"], project, arms_env)

        def preview() -> float:
            command = ["pulumi", "preview", "-s", "bench", "--non-interactive"]
            seconds, output = run(command, project, arms_env)
            created.add(re.findall(r"([0-9]+) to create", output)[-1])
            return seconds

        return preview

    both = {name: arm(name) for name in ("checked", "unchecked")}
    times = in_turns(both, rounds, warm_up=1)
    if len(created) != 1:
        sys.exit(f"the two stacks are not the same: {created} resources")
    print(f"previews of {jobs} jobs, {created.pop()} resources each")
    return ratio(times, "checked", "unchecked", MAX_RATIO)


def pulumi_environment(folder: Path) -> dict[str, str]:
    """Settings of pulumi's own below ``folder``, and the gcp stand-in, which previews offline."""
    tools = folder / "bin"
    tools.mkdir()
    stand_in = tools / "pulumi-resource-gcp"
    stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m localgcp.gcp "$@"\n')
    stand_in.chmod(0o755)
    path = [str(tools), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    return kept | {
        "PATH": os.pathsep.join(path),
        "PULUMI_HOME": str(folder / "pulumi-home"),
        "PULUMI_CONFIG_PASSPHRASE": "bench",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def main() -> int:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="repetitions of each measurement")
    parser.add_argument("--only", choices=("files", "preview"), help="one part alone")
    parser.add_argument("--files", type=int, default=1000, help="files that one command checks")
    parser.add_argument("--jobs", type=int, default=50, help="jobs of the stack")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.machine()}")
    held = True
    folder = Path(tempfile.mkdtemp(prefix="bench-check-"))
    try:
        if chosen.only != "preview":
            held &= bench_files(folder / "files", chosen.rounds, chosen.files)
        if chosen.only != "files":
            held &= bench_preview(folder, chosen.rounds, chosen.jobs)
    finally:
        shutil.rmtree(folder)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
