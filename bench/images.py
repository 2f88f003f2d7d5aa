"""Measure what ``vt images build`` adds to the engine that builds.

    .venv/bin/python bench/images.py [--rounds N] [--engine buildah]

The same context is built and pushed by the bare engine, and by ``vt images build``, in turns in one
run: after a change of one file, and unchanged (for the bare engine from its cache). Prints the
figures and exits 1 if a changed build takes more than 1.15 times as long and 1.5 s more, or if an
unchanged one takes longer than 2 s. The fastest rounds are compared: other programs only make a
round longer. The build is small, one second: a second more is the ratio 1.15 of a build of seven.
Beside the seconds stand the processor's seconds, which other programs change less.

Needs an engine, and ``docker-registry`` (Debian's) on PATH; without them it says so and exits 2.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arms import in_turns, run

from vertex_training.naming import local_project_number

ROOT: Final = Path(__file__).resolve().parents[1]
MAX_RATIO: Final = 1.15
MAX_SECONDS: Final = 1.5
MAX_UNCHANGED: Final = 2.0
PROJECT: Final = "local-bench"
#: Bytes of the layer that stays.
WEIGHTS: Final = 64 * 1024 * 1024
DOCKERFILE: Final = "FROM scratch\nCOPY weights.bin /app/\nCOPY train.py /app/\n"
STACK: Final = """\
config:
  gcp:project: {project}
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:buckets: {{artifacts: {{}}}}
  vertex-training:images:
    train: {{context: jobs/train}}
"""


def make_project(folder: Path) -> Path:
    """A checkout with one context; returns the file that is edited."""
    context = folder / "jobs" / "train"
    context.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    number = local_project_number(PROJECT)
    (folder / "Pulumi.local.yaml").write_text(STACK.format(project=PROJECT, number=number))
    (context / "Dockerfile").write_text(DOCKERFILE)
    (context / "weights.bin").write_bytes(os.urandom(WEIGHTS))
    return context / "train.py"


def start_registry(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A registry on this machine, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "registry.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder / 'data'}}}}}\n"
        f"http: {{addr: '{address}'}}\nlog: {{level: error}}\n"
    )
    command = ["docker-registry", "serve", str(folder / "registry.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host, _, port = address.partition(":")
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex((host, int(port))) == 0:
                return process, address
        time.sleep(0.05)
    sys.exit("the registry did not start")


def processor_seconds() -> float:
    """What all programs that ended took of the processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Arms:
    """The two ways to build, each with a change of its own before it."""

    def __init__(self, folder: Path, address: str, engine: str) -> None:
        self.source = make_project(folder)
        self.folder, self.address, self.engine = folder, address, engine
        self.env = {**os.environ, "ARTIFACT_REGISTRY_EMULATOR_HOST": address}
        self.env["VT_CACHE_DIR"] = str(folder / "cache")
        # As on the machine of a person: the warm-up compiles what later runs load.
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.env["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        self.edits = 0

    def edit(self) -> None:
        """Another content of one file."""
        self.edits += 1
        self.source.write_text(f"print({self.edits})\n")

    def busy(self, arm: Callable[[], float], into: list[float]) -> Callable[[], float]:
        """The arm, with the processor's seconds of each call in a list."""

        def measured() -> float:
            before = processor_seconds()
            seconds = arm()
            into.append(processor_seconds() - before)
            return seconds

        return measured

    def bare(self) -> float:
        """The engine alone: build and push."""
        isolated = ["--isolation", "chroot"] if self.engine == "buildah" else []
        layers = [] if self.engine == "docker" else ["--layers"]
        plain = [] if self.engine == "docker" else ["--tls-verify=false"]
        name = f"{self.address}/bare/train:edit-{self.edits}"
        build = [self.engine, "build", *layers, *isolated, "-t", name, str(self.source.parent)]
        seconds, _ = run(build, self.folder, self.env)
        return seconds + run([self.engine, "push", *plain, name], self.folder, self.env)[0]

    def ours(self) -> float:
        """``vt images build``."""
        command = [str(ROOT / ".venv" / "bin" / "vt"), "images", "build", "--stack", "local"]
        return run([*command, "--engine", self.engine], self.folder, self.env)[0]

    def bare_edited(self) -> float:
        """See ``bare``, after a change."""
        self.edit()
        return self.bare()

    def ours_edited(self) -> float:
        """See ``ours``, after a change."""
        self.edit()
        return self.ours()


def show(name: str, times: dict[str, list[float]]) -> dict[str, float]:
    """Print the figures of one comparison; returns the fastest ones."""
    for arm, taken in times.items():
        listed = " ".join(f"{seconds:.2f}" for seconds in taken)
        found = f"fastest {min(taken):.2f} s, median {statistics.median(taken):.2f} s"
        print(f"{name}, {arm}: {found} ({listed})")
    return {arm: min(taken) for arm, taken in times.items()}


def main() -> int:
    """Run both comparisons; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="buildah")
    given = parser.parse_args()
    for program in (given.engine, "docker-registry"):
        if shutil.which(program) is None:
            print(f"{program} is not installed: nothing was measured.")
            return 2
    with tempfile.TemporaryDirectory(prefix="vt-bench-") as name:
        process, address = start_registry(Path(name))
        try:
            arms = Arms(Path(name) / "checkout", address, given.engine)
            used: dict[str, list[float]] = {"bare": [], "vt": [], "vt unchanged": []}
            edited = in_turns(
                {
                    "bare": arms.busy(arms.bare_edited, used["bare"]),
                    "vt": arms.busy(arms.ours_edited, used["vt"]),
                },
                given.rounds,
                warm_up=1,
            )
            same = in_turns(
                {"bare": arms.bare, "vt": arms.busy(arms.ours, used["vt unchanged"])},
                given.rounds,
                warm_up=1,
            )
        finally:
            process.terminate()
            process.wait()
    changed, unchanged = show("one file changed", edited), show("unchanged", same)
    added, found = changed["vt"] - changed["bare"], changed["vt"] / changed["bare"]
    print(f"one file changed: {added:+.2f} s (at most {MAX_SECONDS}), ratio {found:.3f}")
    print(f"unchanged: {unchanged['vt']:.2f} s (at most {MAX_UNCHANGED})")
    busy = {name: statistics.median(seconds[-given.rounds :]) for name, seconds in used.items()}
    listed = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in busy.items())
    print(
        f"of the processor: {listed}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    slow = (found > MAX_RATIO and added > MAX_SECONDS) or unchanged["vt"] > MAX_UNCHANGED
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
