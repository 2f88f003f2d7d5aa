"""Measure distributed jobs of the local cloud against torchrun alone, with the same world.

    .venv/bin/python bench/distributed.py [--workers N] [--steps N] [--rounds N]

In turns, in one run: a job with a primary and N workers on the local cloud, whose replicas start
torchrun by ``vertex_job.launch``; and the same torchrun commands, started by hand. Both run one
program in one environment. Compared are

- the steady step: the median of all steps but the first
- the start: from the request (by hand: from the first process) to the end of the first step

Packages of a job are not part of it: torchrun by hand has none to install. Exits 1 if a step takes
more than 1.05 times as long, or the start more than 2 s longer, by the medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from arms import in_turns

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.runner import executors
from localgcp.runner.environment import Folders, machine_variables
from vertex_training.errors import TrainingError

ROOT: Final = Path(__file__).resolve().parents[1]
PROJECT: Final = "local-bench"
PARENT: Final = f"projects/{PROJECT}/locations/us-central1"
IMAGE: Final = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
MOST_STEP: Final = 1.05
MOST_START_SECONDS: Final = 2.0
_BOUND_SECONDS: Final = 600.0
_PORT: Final = 29400
#: Between two looks at a job that trains.
_LOOK_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Measured:
    """One run: seconds of its start and of its steady step."""

    start: float
    step: float

    @classmethod
    def of(cls, file: Path, began: float) -> Measured:
        """From what the first rank wrote; ``began`` is a time of day."""
        written = json.loads(file.read_text())
        return cls(written["first"] - began, statistics.median(written["steps"]))


@dataclass
class Arms:
    """Both ways to run the same processes."""

    client: Any
    python: Path
    folder: Path
    storage_url: str
    nodes: int
    steps: int
    _count: int = 0

    def job(self) -> Measured:
        """As a job of the local cloud."""
        file = self._file()
        program = [str(ROOT / "bench/distributed_step.py"), str(file), str(self.steps)]
        container = {
            "image_uri": IMAGE,
            "command": ["python", "-m", "vertex_job.launch", "--processes=1", "--", *program],
            "env": [{"name": "PYTHONPATH", "value": str(ROOT / "jobs/lib")}],
        }
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "container_spec": container}
        pools = [{**pool, "replica_count": 1}, {**pool, "replica_count": self.nodes - 1}]
        began = time.time()
        job = {"display_name": "bench", "job_spec": {"worker_pool_specs": pools}}
        name = self.client.create_custom_job(parent=PARENT, custom_job=job).name
        # While it trains, nobody asks the service for it all the time.
        self._wait(lambda: file.exists() or self._ended(name), _LOOK_SECONDS)
        self._wait(lambda: self._ended(name))
        return Measured.of(file, began)

    def torchrun(self) -> Measured:
        """By hand, each node a torchrun."""
        file = self._file()
        program = [str(ROOT / "bench/distributed_step.py"), str(file), str(self.steps)]
        run = [str(self.python), "-m", "torch.distributed.run", "--nproc-per-node=1"]
        run += [f"--nnodes={self.nodes}", "--master-addr=127.0.0.1", f"--master-port={_PORT}"]
        path = os.pathsep.join([str(self.python.parent), os.defpath])
        folders = Folders(work=self.folder, tmp=self.folder, gcs=self.folder)
        env = machine_variables(folders, path, self.storage_url)
        began = time.time()
        nodes = [
            subprocess.Popen(
                [*run, f"--node-rank={rank}", *program],
                env=env,
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # As the runner does: Linux shares cores among sessions, and then within each.
                start_new_session=True,
            )
            for rank in range(self.nodes)
        ]
        try:
            codes = [node.wait(_BOUND_SECONDS) for node in nodes]
        finally:  # of an interrupt as well: a session of its own hears of none
            for node in nodes:
                node.terminate()
        if any(codes):
            sys.exit(f"torchrun ended with {codes}")
        return Measured.of(file, began)

    def _file(self) -> Path:
        self._count += 1
        return self.folder / f"run-{self._count}.json"

    def _ended(self, name: str) -> bool:
        found = self.client.get_custom_job(name=name)
        state = found.state.name.removeprefix("JOB_STATE_")
        if state in ("FAILED", "CANCELLED"):
            sys.exit(f"the job ended {state}: {found.error.message}")
        return state == "SUCCEEDED"

    def _wait(self, is_done: Callable[[], bool], pause: float = 0.2) -> None:
        until = time.monotonic() + _BOUND_SECONDS
        while not is_done():
            if time.monotonic() > until:
                sys.exit("the job takes too long")
            time.sleep(pause)


@contextmanager
def local_cloud(folder: Path) -> Iterator[tuple[Any, str]]:
    """A local cloud of its own: a client of its job service, and the address of its storage."""
    import grpc
    from google.cloud import aiplatform_v1 as vertex
    from google.cloud.aiplatform_v1.services.job_service.transports.grpc import (
        JobServiceGrpcTransport,
    )

    home = Home(folder / "home", ROOT)
    home.create()
    Store(home.database).put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    info = lifecycle.start(home, lambda _: None)
    try:
        channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
        transport = JobServiceGrpcTransport(channel=channel)
        client = vertex.JobServiceClient(transport=transport)
        yield client, f"http://127.0.0.1:{info.storage_port}"
    finally:
        lifecycle.stop(home)
        lifecycle.remove(home)


def main() -> int:
    """Measure; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1, help="beside the primary")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    executor = executors.for_image(IMAGE)
    assert executor is not None
    python = executors.environment(executor, print) / "bin/python"
    with tempfile.TemporaryDirectory(prefix="vt-bench-") as made:
        folder = Path(made)
        with local_cloud(folder) as (client, url):
            arms = Arms(client, python, folder, url, options.workers + 1, options.steps)
            found: dict[str, list[Measured]] = {"job": [], "torchrun": []}

            def measure(name: str) -> float:
                found[name].append(getattr(arms, name)())
                return found[name][-1].step

            in_turns({name: lambda name=name: measure(name) for name in found}, options.rounds, 1)
    return report({name: taken[-options.rounds :] for name, taken in found.items()}, options)


def report(found: dict[str, list[Measured]], options: argparse.Namespace) -> int:
    """Print what was measured, without the first round; returns the exit code."""
    print(f"{options.workers + 1} nodes, {options.steps} steps, {options.rounds} rounds")
    for name, taken in found.items():
        steps = " ".join(f"{each.step * 1000:.2f}" for each in taken)
        starts = " ".join(f"{each.start:.1f}" for each in taken)
        print(f"{name:9} step {steps} ms; start {starts} s")
    median = {
        name: (statistics.median(m.step for m in taken), statistics.median(m.start for m in taken))
        for name, taken in found.items()
    }
    ratio = median["job"][0] / median["torchrun"][0]
    later = median["job"][1] - median["torchrun"][1]
    fastest = {name: min(each.step for each in taken) for name, taken in found.items()}
    print(f"ratio of the fastest steps {fastest['job'] / fastest['torchrun']:.3f}")
    print(f"steady step: {ratio:.3f} times as long (at most {MOST_STEP})")
    print(f"start: {later:+.2f} s (at most +{MOST_START_SECONDS})")
    return 0 if ratio <= MOST_STEP and later <= MOST_START_SECONDS else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TrainingError as error:
        sys.exit(f"error: {error}")
