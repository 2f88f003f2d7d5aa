"""Measure the cost of a submission in the provider, in the engine, and with other clients.

    .venv/bin/python bench/submit.py [--sizes 10,100] [--rounds N] [--calls N] [--json FILE]

Compares the provider with Google's clients, and ``pulumi up`` of N jobs with N trivial resources
(the floor). Measures bytes of state. Exits with 1 if a goal is missed (docs/maintainers.md).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from arms import in_turns

ROOT: Final = Path(__file__).resolve().parents[1]
#: Maximum bytes of state of a job. The SDK's stack trace has 1,200 of these bytes.
MAX_STATE: Final = 3200
#: Maximum ratio of the time of ``up`` to the floor, by the number of jobs.
MAX_RATIO: Final = {100: 1.0, 1000: 1.0}
SHELL: Final = {"imageUri": "shell", "command": ["true"]}
POOL: Final = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": SHELL,
}
#: Measured programs with placeholders: ``pool``, ``project`` and ``region`` of the submission, and
#: ``provider``, a class in ``PROVIDERS``.
FLOOR: Final = """\
import json
from pathlib import Path
from pulumi.dynamic import Resource
from floor import {provider}
class Trivial(Resource, module="bench", name="Trivial"):
    def __init__(self, name):
        super().__init__({provider}(), name, {{"text": name}})
for key in json.loads(Path("jobs.json").read_text()):
    Trivial(key)
"""
PROVIDERS: Final = """\
from pulumi.dynamic import CreateResult, ResourceProvider
class Nothing(ResourceProvider):
    serialize_as_secret_always = False
    def create(self, props):
        return CreateResult(props["text"], props)
class Bare(ResourceProvider):
    serialize_as_secret_always = False
    def create(self, props):
        from vertex_training.customjob.google.job_service import connect
        from vertex_training.customjob.google.vertex_api import CustomJob
        job = connect("{project}", "{region}")._client.create_custom_job(
            parent="projects/{project}/locations/{region}",
            custom_job=CustomJob(display_name=props["text"],
                                 job_spec={{"worker_pool_specs": [{pool}]}}))
        return CreateResult(job.name, props)
"""
#: A program with the high-level SDK, whose client is replaced by a client without TLS.
HIGH_LEVEL: Final = """\
import os, sys, time
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from google.cloud.aiplatform import initializer
from vertex_training.customjob.google.job_service import client
local = client("{project}", "{region}")
initializer.global_config.create_client = lambda *_, **__: local
def submit(name):
    job = aiplatform.CustomJob(name, [{pool}], project="{project}", location="{region}",
                               staging_bucket="gs://x", credentials=AnonymousCredentials())
    job.submit()
times = []
for number in range(int(sys.argv[1])):
    began = time.perf_counter()
    submit(f"sdk-{{number}}")
    times.append(time.perf_counter() - began)
print(sorted(times)[len(times) // 2])
"""


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def medians(figures: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each series."""
    return {what: statistics.median(taken) for what, taken in figures.items()}


def program_arguments(module: Any) -> dict[str, Any]:
    """Return the arguments of the measured programs: job and target."""
    container = {"image_uri": "shell", "command": ["true"]}
    machine = {"machine_type": "n1-standard-4"}
    pool = {"machine_spec": machine, "replica_count": 1, "container_spec": container}
    return {"project": module.PROJECT, "region": module.REGION, "pool": pool}


def occupy_runner(module: Any, client: Any) -> None:
    """Fill every slot of the runner, so that later jobs wait and use no processor time."""
    from localgcp.runner.scheduler import SLOTS

    container = {**SHELL, "command": ["sleep", "86400"]}
    for number in range(SLOTS):
        bare(module, client, f"busy-{number}", {**POOL, "containerSpec": container})


def bare(module: Any, client: Any, name: str, pool: dict[str, Any] = POOL) -> None:
    """Submit a job with the bare client."""
    from google.protobuf.json_format import ParseDict

    from vertex_training.customjob.google.vertex_api import CustomJob

    job = CustomJob()
    body = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool]}}
    ParseDict(body, CustomJob.pb(job))
    client.create_custom_job(
        parent=f"projects/{module.PROJECT}/locations/{module.REGION}", custom_job=job
    )


def by_provider(module: Any, name: str) -> None:
    """Submit a job with the provider, as the engine calls the provider."""
    from vertex_training.customjob.provider import CustomJobProvider
    from vertex_training.customjob.request.job_file import canonical

    body = canonical({"displayName": name, "jobSpec": {"workerPoolSpecs": [POOL]}})
    CustomJobProvider().create(
        {
            "submission": {
                "project": module.PROJECT, "region": module.REGION,
                "stack": "bench", "job": name, "run": 1,
            },
            "requestId": name,
            "request": body,
            "options": {"labels": {}, "controlBucket": module.CONTROL, "onDelete": "keep"},
        }
    )  # fmt: skip


def calls(module: Any, project: Any, count: int) -> dict[str, float]:
    """Return the median seconds of a submission by each client, measured in turns."""
    from vertex_training.customjob.google.job_service import client

    connected = client(module.PROJECT, module.REGION)
    occupy_runner(module, connected)
    numbers = itertools.count()
    times = in_turns(
        {
            "bare client": lambda: timed(lambda: bare(module, connected, f"bare-{next(numbers)}")),
            "provider": lambda: timed(lambda: by_provider(module, f"provider-{next(numbers)}")),
        },
        count,
        warm_up=1,
    )
    script = HIGH_LEVEL.format(**program_arguments(module))

    def high_level(jobs: int) -> str:
        command = [sys.executable, "-c", script, str(jobs)]
        return subprocess.run(
            command, cwd=project.path, capture_output=True, text=True, check=True
        ).stdout

    return {
        **medians(times),
        "high-level SDK": float(high_level(count).split()[-1]),
        "high-level SDK from process start": timed(lambda: high_level(1)),
    }


def engine(module: Any, project: Any, size: int, rounds: int) -> dict[str, float]:
    """Measure ``pulumi up`` of ``size`` jobs: median seconds, and bytes of state per job."""
    (project.path / "floor.py").write_text(PROVIDERS.format(**program_arguments(module)))
    programs = {
        "jobs": module.PROGRAM,
        "bare": FLOOR.format(provider="Bare"),
        "floor": FLOOR.format(provider="Nothing"),
    }
    states: dict[str, list[float]] = {f"{kind}: bytes": [] for kind in programs}
    numbers = itertools.count()

    def arm(kind: str) -> float:
        names = f"job-{size}-{next(numbers)}"
        seconds, state = one_up(project, programs[kind], names, size)
        states[f"{kind}: bytes"].append(state)
        return seconds

    times = in_turns({kind: functools.partial(arm, kind) for kind in programs}, rounds)
    return medians(times | states)


def one_up(project: Any, program: str, names: str, size: int) -> tuple[float, float]:
    """Return the seconds of a ``pulumi up``, and the bytes of state per resource."""
    saved = project.path / "empty.json"
    (project.path / "__main__.py").write_text(program)
    project.want()
    project.up()  # measures the state of an empty stack
    project.pulumi(f"stack export -s local --file {saved}")
    empty = state_bytes(project)
    # Each run has new names, because a submitted request would be adopted.
    project.want(**{f"{names}-{n}": {"script": "true"} for n in range(size)})
    seconds = timed(project.up)
    state = (state_bytes(project) - empty) / size
    # Empty the stack for the next measurement, without waiting for jobs to end.
    project.pulumi(f"stack import -s local --force --file {saved}")
    return seconds, state


def real_job(project: Any) -> int:
    """Return the bytes of state of the job in this repository's local stack."""
    env = project.env
    command = "pulumi up -s local --yes --skip-preview --non-interactive"
    subprocess.run(
        ["vt", "local", "shell", "-c", command], cwd=ROOT, env=env, check=True, capture_output=True
    )
    file = project.home.pulumi / ".pulumi" / "stacks" / "vertex-training" / "local.json"
    resources = json.loads(file.read_text())["checkpoint"]["latest"]["resources"]
    [job] = [resource for resource in resources if resource["type"].endswith(":CustomJob")]
    return len(json.dumps(job, separators=(",", ":")))


def missed(report: dict[str, Any]) -> list[str]:
    """Return the missed goals, one line for each goal."""
    lines = []
    for size, row in report["engine"].items():
        if row["jobs: bytes"] > MAX_STATE:
            lines.append(f"{size} jobs: {row['jobs: bytes']:.0f} bytes per job, goal {MAX_STATE}")
        ratio = row["jobs"] / row["floor"]
        if ratio > MAX_RATIO.get(size, ratio):
            lines.append(f"{size} jobs: {ratio:.2f} times the floor, goal {MAX_RATIO[size]}")
    return lines


def state_bytes(project: Any) -> int:
    """Return the size of the state file."""
    file = project.home.pulumi / ".pulumi" / "stacks" / "only-jobs" / "local.json"
    return file.stat().st_size


def main() -> int:
    """Parse the command line, run all measurements, and print missed goals."""
    parser = argparse.ArgumentParser(description="Measure the cost of a submission.")
    parser.add_argument("--sizes", default="10,100,300,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    began = time.perf_counter()
    sys.path.insert(0, str(ROOT))
    from tests.e2e import only_jobs as module

    report: dict[str, Any] = {"machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    with tempfile.TemporaryDirectory() as folder, module.project(Path(folder)) as project:
        from localgcp.home.servers import ServerInfo

        info = ServerInfo.read(project.home.server_file)
        assert info
        os.environ["VERTEX_EMULATOR_HOST"] = f"127.0.0.1:{info.vertex_port}"
        os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{info.storage_port}"
        report["calls"] = calls(module, project, arguments.calls)
        show_calls(report["calls"])
        report["engine"] = {}
        for size in map(int, arguments.sizes.split(",")):
            report["engine"][size] = engine(module, project, size, arguments.rounds)
            show_engine(size, report["engine"][size])
        report["real job: bytes"] = real_job(project)
        print(f"the job of the local stack: {report['real job: bytes']} bytes of state", flush=True)
    report["missed"] = missed(report)
    report["minutes"] = (time.perf_counter() - began) / 60
    for line in report["missed"]:
        print(f"missed: {line}")
    print(f"{report['machine']}, {report['minutes']:.0f} minutes")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2))
    return int(bool(report["missed"]))


def show_calls(per_job: dict[str, float]) -> None:
    """Print the results of :func:`calls`."""
    for name, seconds in per_job.items():
        ratio = seconds / per_job["bare client"]
        print(f"{name:36} {seconds * 1000:9.1f} ms  {ratio:6.1f} x bare client", flush=True)


def show_engine(size: int, times: dict[str, float]) -> None:
    """Print the results of :func:`engine`."""
    print(
        f"{size:5} jobs: up {times['jobs']:.1f} s, bare call {times['bare']:.1f} s, floor "
        f"{times['floor']:.1f} s, ratio {times['jobs'] / times['floor']:.2f}, to the bare "
        f"call {times['bare'] / times['floor']:.2f}; state {times['jobs: bytes']:.0f} "
        f"bytes per job, floor {times['floor: bytes']:.0f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
