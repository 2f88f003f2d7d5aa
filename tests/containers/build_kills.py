"""Kills of ``vt images build`` with a real engine and a real registry: at each step, on both sides.

The process that builds replaces a function of its own by one that kills it; the product has no
places for that. What is left is judged, and the build is run again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from localgcp.containers import registry
from tests.fixture_project import source_path
from tests.unit.localcloud.conftest import free_port
from vertex_training.naming import local_project_number

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final = "local-kills"
BASE: Final = "localhost/base:v1"
BUILD: Final = ("images", "build", "--stack", "local", "--engine", "buildah")
STACK: Final = """\
# The stack of the kills.
config:
  gcp:project: {project}
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:buckets: {{artifacts: {{}}}}
  vertex-training:images:
    train: {{context: jobs/train}}  # what is killed
"""
DOCKERFILE: Final = f"FROM {BASE}\nCOPY train.py /app/\nRUN echo in the middle; sleep 1\n"
#: What kills: a call of a function (the how-maniest), before it, after it, or a line of the log.
CODE: Final = """\
import os, pkgutil, sys
step, call, side, words = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
module, _, name = step.rpartition(".")
holder = pkgutil.resolve_name(module)
real, count = getattr(holder, name), 0
def killed(*arguments, **options):
    global count
    count += 1
    if count != call:
        return real(*arguments, **options)
    if side == "before":
        os.kill(os.getpid(), 9)
    real(*arguments, **options)
    os.kill(os.getpid(), 9)
def killed_by_line(self, line):
    real(self, line)
    if side in line:
        os.kill(os.getpid(), 9)
setattr(holder, name, killed if side in ("before", "after") else killed_by_line)
from vertex_training_cli.cli import app
app(words)
"""


@dataclass(frozen=True)
class Point:
    """Where a build is killed."""

    what: str
    function: str
    call: int
    side: str
    """``before``, ``after``, or a part of a line of the log."""

    def __str__(self) -> str:
        return f"{self.side}: {self.what}"


_IMAGES: Final = "vertex_training_cli.images"
_STEPS: Final = (
    ("the registry is asked for the tag", "registry.RemoteImage.digest_of", 1),
    ("the repository is looked for", "registry.RemoteImage.lacks_repository", 1),
    ("the build is locked", "building.fcntl.flock", 1),
    ("the registry is asked once more", "registry.RemoteImage.digest_of", 2),
    ("the context is archived", "building._write_archive", 1),
    ("the context is unpacked", "programs.tarfile.open", 1),
    ("the image is built", "programs.run", 1),
    ("the registry is asked before the push", "registry.RemoteImage.digest_of", 3),
    ("the image is pushed", "programs.run", 2),
    ("the digest is read", "registry.RemoteImage.digest_of", 4),
    ("the stack file is edited", "building.set_value", 1),
    ("the stack file is written", "building.os.fchmod", 1),
    ("the stack file is replaced", "building.os.replace", 1),
)
_LINE: Final = f"{_IMAGES}.programs.LastLines.write"
POINTS: Final = (
    *(
        Point(what, f"{_IMAGES}.{name}", call, side)
        for what, name, call in _STEPS
        for side in ("before", "after")
    ),
    Point("an instruction runs", _LINE, 1, "in the middle"),
    Point("layers are pushed", _LINE, 1, "Copying blob"),
)
#: For every run of the tests; ``make chaos`` takes all.
SAMPLE: Final = tuple(
    point
    for point in POINTS
    if (point.side, point.what) in (
        ("after", "the context is archived"),
        ("in the middle", "an instruction runs"),
        ("Copying blob", "layers are pushed"),
        ("before", "the stack file is replaced"),
    )
)  # fmt: skip


class Builds:
    """A registry, a checkout and builders with files of their own, in one folder."""

    def __init__(self, folder: Path, address: str, layout: Path) -> None:
        self.folder, self.address = folder, address
        self.source = folder / "checkout" / "jobs" / "train" / "train.py"
        self.stack = folder / "checkout" / "Pulumi.local.yaml"
        self.tmp = folder / "tmp"
        settings = folder / "storage.conf"
        places = f'graphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        settings.write_text(f'[storage]\ndriver = "overlay"\n{places}')
        self.env = {
            **os.environ, "CONTAINERS_STORAGE_CONF": str(settings), "TMPDIR": str(self.tmp),
            "ARTIFACT_REGISTRY_EMULATOR_HOST": address, "VT_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": source_path(ROOT), "NO_COLOR": "1", "VERTEX_EMULATOR_HOST": "127.0.0.1:1",
        }  # fmt: skip
        self.source.parent.mkdir(parents=True)
        self.tmp.mkdir()
        (self.stack.parent / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
        (self.source.parent / "Dockerfile").write_text(DOCKERFILE)
        number = local_project_number(PROJECT)
        self.new = STACK.format(project=PROJECT, number=number).encode()
        # By a short name, since the builder makes the name of the image of it.
        (self.stack.parent / "base").symlink_to(layout)
        self._call("buildah", "pull", "--quiet", f"oci:base:{registry.BASE.rpartition(':')[2]}")
        image = self._call("buildah", "images", "--quiet", "--no-trunc").split()[0]
        self._call("buildah", "tag", image, BASE)
        #: The builder keeps its store mounted.
        self.store = set(mounts_below(folder))

    def _call(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.env, cwd=self.stack.parent, text=True, capture_output=True, check=True
        )
        return done.stdout

    def trial(self, point: Point) -> str:
        """Kill a build of a new context at ``point``; what is wrong after it, or empty."""
        self.stack.write_bytes(self.new)
        self.source.write_text(f"print({str(point)!r})\n")
        command = [sys.executable, "-c", CODE, point.function, str(point.call), point.side]
        killed = self._run([*command, *BUILD])
        if killed.returncode != -signal.SIGKILL:
            return f"was not killed: {killed.stdout}"
        left = self.stack.read_bytes()
        if left != self.new and self._pin() != self._pushed():
            return f"the stack file is neither as it was nor complete: {left!r}"
        again = self._run([sys.executable, "-m", "vertex_training_cli.cli", *BUILD])
        if again.returncode:
            return f"the next build failed: {again.stdout}"
        return self._judge()

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        output = self.folder / "output"
        with output.open("w") as stream:  # no pipe: an engine that outlives its caller holds it
            done = subprocess.run(
                command, cwd=self.stack.parent, env=self.env, stdout=stream,
                stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
        return subprocess.CompletedProcess(command, done.returncode, output.read_text())

    def _judge(self) -> str:
        """What is wrong after the second build, when an engine that was left behind has ended."""
        end = time.monotonic() + 60
        while self.processes() and time.monotonic() < end:
            time.sleep(0.1)
        if found := self.processes():
            return f"processes are left: {found}"
        if self._pin() != self._pushed():
            return f"pinned {self._pin()}, and the registry has {self._pushed()}"
        found = self.left()
        return f"is left: {found}" if found else ""

    def build(self, *options: str) -> str:
        """What a build prints that nobody kills."""
        self.stack.write_bytes(self.new)
        return self._run([sys.executable, "-m", "vertex_training_cli.cli", *BUILD, *options]).stdout

    def left(self) -> list[str]:
        """Files, mounts and containers of builds that ended."""
        work = (self.folder / "cache" / "image-builds").glob("*/*")
        files = (*self.tmp.iterdir(), *work, *self.stack.parent.glob(".vt-new-*"))
        left = [path.name for path in files]
        mounts = sorted(set(mounts_below(self.folder)) - self.store)
        containers = self._call("buildah", "containers", "--quiet").split()
        return [*left, *mounts, *containers]

    def processes(self) -> list[str]:
        """Command lines of engines that work on this folder or its registry."""
        found = []
        for file in Path("/proc").glob("[0-9]*/environ"):
            try:
                mine = str(self.folder / "storage.conf").encode() in file.read_bytes()
                line = file.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found += [line] if mine and line else []
        return found

    def _pin(self) -> tuple[str, str]:
        image = yaml.safe_load(self.stack.read_bytes())["config"]["vertex-training:images"]["train"]
        return image["builtFrom"], image["digest"]

    def _pushed(self) -> tuple[str, str | None]:
        tag = self._pin()[0]
        name = f"{PROJECT}/training-local/train"
        url = f"http://{self.address}/v2/{name}/manifests/{tag}"
        kinds = "application/vnd.oci.image.manifest.v1+json"
        request = urllib.request.Request(url, method="HEAD", headers={"Accept": kinds})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return tag, answer.headers["Docker-Content-Digest"]


def mounts_below(folder: Path) -> list[str]:
    """Mounts below a folder, the innermost first."""
    found = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((each for each in found if each.startswith(f"{folder}/")), reverse=True)


@contextmanager
def builds(registry_program: str, layout: Path) -> Iterator[Builds]:
    """A registry that runs, and what builds for it. ``layout`` is the base image."""
    with tempfile.TemporaryDirectory(prefix="build-kills-") as name:
        folder = Path(name)
        port = free_port()
        (folder / "registry.json").write_text(
            json.dumps({
                "version": 0.1, "log": {"level": "error"}, "http": {"addr": f"127.0.0.1:{port}"},
                "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            })
        )  # fmt: skip
        command = [registry_program, "serve", str(folder / "registry.json")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(port)
            yield Builds(folder, f"127.0.0.1:{port}", layout)
        finally:
            process.terminate()
            process.wait()
            for mount in mounts_below(folder):
                subprocess.run(["umount", "--lazy", mount], check=False)


def _wait(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, "the registry did not start"
        time.sleep(0.05)
