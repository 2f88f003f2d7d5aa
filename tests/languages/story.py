"""An example program of docs/components.md on the local stack, outside of the checkout.

The story is the same in every language: a wrong argument is named by its path and makes nothing,
`up` makes the components beside the program's own bucket and the job succeeds, a second `up`
changes nothing, and `destroy` leaves nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.conftest import ROOT, Checkout

EXAMPLES = ROOT / "docs" / "examples" / "components"
PLUGIN = "pulumi-resource-vertex-training"
NUMBER = "971240389164"


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

    def pulumi(self, command: str, expect: int | None = 0) -> str:
        """Run `pulumi COMMAND` in the local shell; what it said."""
        done = self.checkout.shell(f"pulumi {command}", expect=expect)
        return done.stdout + done.stderr

    def npm_install(self) -> None:
        """Install what package.json names; skips where no registry answers."""
        done = self.checkout.run("npm", "install", "--no-audit", "--no-fund", expect=None)
        said = done.stdout + done.stderr
        if done.returncode and re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT", said):
            pytest.skip("npm reaches no registry: set `registry` in ~/.npmrc")
        assert done.returncode == 0, said

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


def is_refused(program: Program, old: str, new: str, path: str) -> None:
    """With ``new`` in its text, the program is refused for the argument at ``path``."""
    with program.edited(old, new):
        said = program.pulumi("preview", expect=None)
    assert "TrainingBuckets 'store': 1 mistake; nothing of it was declared." in said
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
