"""A project whose stack has only jobs: the real component, provider, engine and CLI.

What a stack puts around its jobs takes the engine ten seconds at each `up`; here the local cloud is
given it directly.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.cloud import storage

from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.inventory.store import BUCKET, SERVICE, Store
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.e2e.small_stacks import PROGRAMS
from tests.fixture_project import clean_environment, source_path

ROOT = Path(__file__).parents[2]
PROJECT, REGION, CONTROL = "local-jobs", "us-central1", "local-jobs-control"

PROJECT_FILE = f"""\
name: only-jobs
runtime: {{name: python, options: {{toolchain: pip, virtualenv: {ROOT / ".venv"}}}}}
"""
PROGRAM = PROGRAMS["only_jobs"]["PROGRAM"]
#: For stories of refusals, each of which the real provider takes 45 s to believe.
REFUSED_SOON = PROGRAMS["only_jobs"]["REFUSED_SOON"]
STACK_FILE = f"config: {{gcp:project: {PROJECT}, gcp:region: {REGION}}}\n"


@dataclass(frozen=True)
class Project:
    """The project's folder, with a local cloud of its own."""

    path: Path

    @property
    def home(self) -> Home:
        return Home(self.path / ".vt-local", self.path)

    @property
    def env(self) -> dict[str, str]:
        """A clean environment, without an outer local cloud or the user's Pulumi settings."""
        kept = clean_environment()
        path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{kept['PATH']}"
        home = {
            "VT_LOCAL_HOME": str(self.home.root),
            "PYTHONPATH": source_path(ROOT),
            "NO_COLOR": "1",
        }
        return kept | home | {"PATH": path}

    def want(self, **jobs: Mapping[str, Any]) -> None:
        """Set the stack's jobs: ``script``, and keys of a stack file's job.

        ``machine`` and ``spec`` are fields of the request's ``machineSpec`` and ``jobSpec``.
        """
        (self.path / "jobs.json").write_text(json.dumps(jobs))

    def vt(self, *arguments: str, code: int | None = 0, **options: Any) -> str:
        """Run a `vt` command and return its output; its exit code must be ``code`` (None: any)."""
        done = subprocess.run(
            ["vt", *arguments], cwd=self.path, env=self.env, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
            stdin=subprocess.DEVNULL, **options,
        )  # fmt: skip
        assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def pulumi(self, command: str, code: int | None = 0) -> str:
        """Run `pulumi COMMAND` in the local shell and return its output."""
        return self.vt("local", "shell", "-c", f"pulumi {command} --non-interactive", code=code)

    def up(self, code: int | None = 0) -> str:
        return self.pulumi("up -s local --yes --skip-preview", code)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command of the local shell; signals reach the command itself."""
        line = f"exec {' '.join(command)}"
        return subprocess.Popen(
            ["vt", "local", "shell", "-c", line], cwd=self.path, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start_until(self, said: str, *command: str) -> subprocess.Popen[str]:
        """Start a command as ``start``, and return after it printed a line with ``said``."""
        process = self.start(*command)
        assert process.stdout
        told = ""
        for line in process.stdout:
            told += line
            if said in line:
                return process
        raise AssertionError(f"it ended before it said {said!r}:\n{told}")

    def accepted(self, job: str) -> list[JobRecord]:
        """Return all jobs that the local cloud accepted under this name, for any run."""
        return [x for x in JobTable(self.home.database).list() if x.labels["vt-job"] == job]

    def states(self, job: str) -> list[JobState]:
        """Return the states of these jobs."""
        return [each.state for each in self.accepted(job)]

    def live(self, job: str) -> list[str]:
        """Return the runs of active jobs, once for each job."""
        return [x.labels["vt-run"] for x in self.accepted(job) if not x.state.terminal]

    def settled(self) -> None:
        """Check that a preview has no changes."""
        self.pulumi("preview -s local --expect-no-changes")

    @property
    def storage(self) -> storage.Client:
        """Google's client of Cloud Storage."""
        info = ServerInfo.read(self.home.server_file)
        assert info
        return storage_client(f"http://127.0.0.1:{info.storage_port}")

    def state(self) -> dict[str, Any]:
        """Return the stack's state: ``resources`` and ``pending_operations``."""
        file = self.home.pulumi / ".pulumi" / "stacks" / "only-jobs" / "local.json"
        return json.loads(file.read_text())["checkpoint"]["latest"]


@contextmanager
def project(folder: Path, before: str = "") -> Iterator[Project]:
    """Yield the project in an empty folder with its cloud running; delete it afterwards.

    ``before`` goes before its program.
    """
    (folder / "Pulumi.yaml").write_text(PROJECT_FILE)
    (folder / "Pulumi.local.yaml").write_text(STACK_FILE)
    (folder / "__main__.py").write_text(before + PROGRAM)
    made = Project(folder)
    made.vt("local", "start")
    try:
        store = Store(made.home.database)
        for api in ("aiplatform", "logging"):
            store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        store.put(BUCKET, CONTROL, PROJECT, {}, {"name": CONTROL, "project": PROJECT})
        made.storage.create_bucket(CONTROL)
        yield made
    finally:
        made.vt("local", "down", "--clean")  # refused while a `pulumi` runs: nothing may be left
