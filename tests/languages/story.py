"""An example program of docs/components.md on the local stack, outside of the checkout.

The story is the same in every language: a wrong argument is named by its path and makes nothing,
`up` makes the components beside the program's own bucket and the job succeeds, a second `up`
changes nothing, and `destroy` leaves nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.conftest import ROOT, Checkout
from tools import release

EXAMPLES = ROOT / "docs" / "examples" / "components"
PLUGIN = "pulumi-resource-vertex-training"
NUMBER = "971240389164"
#: What a clone has of pulumi and vt; of our plugin only what is in its folder.
PROGRAMS = (
    *("localgcp", "pulumi", "pulumi-language-nodejs", "pulumi-language-python"),
    *("pulumi-language-python-exec", "pulumi-language-yaml", "pulumi-resource-pulumi-python", "vt"),
)
OURS = re.compile(r"_?(vertex_training|localgcp)\b.*|__editable__.*")


def skip_without(host: str, *programs: str) -> None:
    """Skip where a language host or another program is missing, and say how to get it."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    missing = [name for name in (host, *programs) if not shutil.which(name, path=path)]
    how = "make languages" if host in missing else "apt-get install nodejs npm"
    if missing:
        pytest.skip(f"{', '.join(missing)} is missing: {how}")


@dataclass(frozen=True)
class Program:
    """A copy of an example, with a local cloud of its own."""

    checkout: Checkout
    file: Path
    """Where its arguments are."""
    variables: str = ""
    """Of the shell, for every `pulumi`."""

    def pulumi(self, command: str, expect: int | None = 0) -> str:
        """Run `pulumi COMMAND` in the local shell; what it said."""
        done = self.checkout.shell(f"{self.variables}pulumi {command}", expect=expect)
        return done.stdout + done.stderr

    def install(self, command: str = "install") -> None:
        """`pulumi install`; npm alone asks a registry. Skips where npm's does not answer."""
        said = self.pulumi(f"{command} 2>&1 || echo failed")
        if re.search(r"npm.*(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT)", said):
            pytest.skip("npm reaches no registry: set `registry` in ~/.npmrc")
        assert "failed" not in said, said
        assert "api.pulumi.com" not in said

    @contextmanager
    def edited(self, old: str, new: str) -> Iterator[None]:
        """With another text in its file."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            self.file.write_text(text, encoding="utf-8")

    def last_job(self) -> JobRecord:
        """The newest job."""
        return JobTable(self.checkout.home / "cloud.sqlite").list(NUMBER)[0]

    def state_of_last_job(self) -> JobState:
        """State of the newest job, once it has ended; at most a minute is waited."""
        for _ in range(600):
            if (job := self.last_job()).state.terminal:
                return job.state
            time.sleep(0.1)
        raise AssertionError(f"the job is still {job.state}")


@contextmanager
def running(source: Path, file: str, target: Path) -> Iterator[Program]:
    """A copy of the program in ``source``, with a stack of its own."""
    folder = target / source.name
    shutil.copytree(source, folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    found = Program(Checkout(folder, folder / ".vt-local"), folder / file)
    found.checkout.run("vt", "local", "start")
    try:
        found.pulumi("stack init dev")
        yield found
    finally:
        found.checkout.run("vt", "local", "down", "--clean")


@contextmanager
def cloned(source: Path, file: str, target: Path) -> Iterator[Program]:
    """A fresh clone of the program in ``source``, with the release's plugin in a folder of it.

    Its author unpacked an archive and committed it. The clone has `pulumi`, and no package of ours.
    """
    author, clone = target / "author", target / source.name
    shutil.copytree(source, author)
    unpack_release(release.PLUGIN, target, author / release.FOLDER)
    git = ["git", "-C", str(author), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "A program"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run(["git", "clone", "-q", str(author), str(clone)], check=True)
    with installed(clone / file, clone / release.FOLDER / "venv", target / "packages") as found:
        found.install()
        found.pulumi("stack init dev")
        yield found


@contextmanager
def installed(file: Path, environment: Path, packages: Path) -> Iterator[Program]:
    """The program of ``file``, whose virtual environment is to be completed, with a local cloud."""
    folder = file.parent
    make_environment(environment, packages)
    wrap_programs(folder / ".venv" / "bin")
    variables = f"PULUMI_PYTHON_CMD={environment}/bin/python {without_index()}"
    found = Program(Checkout(folder, folder / ".vt-local"), file, variables)
    found.checkout.run("vt", "local", "start")
    try:
        yield found
    finally:
        found.checkout.run("vt", "local", "down", "--clean")


def unpack_release(name: str, target: Path, folder: Path) -> None:
    """Build a release of this checkout and unpack its first archive of this name."""
    built = release.build(ROOT, target / "dist")
    with tarfile.open(next(file for file in built if file.name.startswith(name))) as archive:
        archive.extractall(folder, filter="data")


def make_environment(folder: Path, packages: Path) -> None:
    """A virtual environment with what our packages need and without them: pip adds the wheel."""
    packages.mkdir()
    installed = Path(sysconfig.get_path("purelib"))
    for each in installed.iterdir():
        if not OURS.fullmatch(each.name):
            (packages / each.name).symlink_to(each)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(f"{packages}\n")


def wrap_programs(folder: Path) -> None:
    """The programs of this checkout's environment, without its Python and its plugin."""
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        if (original := ROOT / ".venv" / "bin" / name).exists():
            (folder / name).write_text(f'#!/bin/sh\nexec {original} "$@"\n')
            (folder / name).chmod(0o755)


def without_index() -> str:
    """Keeps pip from asking an index. The official host lets it update itself first."""
    host = (ROOT / ".venv" / "bin" / "pulumi-language-python").read_bytes()
    return "PIP_NO_INDEX=1 " if b"offline_engine" in host else ""


def is_refused(program: Program, old: str, new: str, path: str) -> None:
    """With ``new`` in its text, the program is refused for the argument at ``path``."""
    with program.edited(old, new):
        said = program.pulumi("preview", expect=None)
    assert "TrainingBuckets 'store': 1 mistake; the component declared no resource." in said
    assert path in said
    assert "must be 0 (off) or 7 to 90 days (got 3)." in said
    assert "Traceback" not in said


def comes_up(program: Program) -> None:
    """All is made, with the program's own bucket, and the job succeeds; then nothing changes."""
    said = program.pulumi("up -y --skip-preview")
    assert "+ 22 created" in said
    assert f"projects/{NUMBER}/locations/us-central1/customJobs/" in program.pulumi("stack output")
    assert program.state_of_last_job() == JobState.SUCCEEDED
    said = program.pulumi("up -y --skip-preview --expect-no-changes")
    assert "22 unchanged" in said


def goes_down(program: Program) -> None:
    """Nothing of it is left, and nothing of the program's own."""
    assert "- 22 deleted" in program.pulumi("destroy -y")
    assert program.checkout.left("local-training") == {}
