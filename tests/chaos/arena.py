"""A local cloud with a minimal program that submits to it, driven by the real CLI."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from localgcp import lifecycle
from localgcp.batch.records import BatchTable
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, inject
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from localgcp.lifecycle import end_orphaned_plugins
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobState, JobTable, RecordTable
from tests.chaos.messages import TRAINER
from tests.fixture_project import source_path
from vertex_training.customjob.batch import STATES
from vertex_training.customjob.google import backends, intent_store
from vertex_training.customjob.google import job_service as client
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL, TERMINAL
from vertex_training_cli.engine import locks

ROOT: Final = Path(__file__).parents[2]
PROJECT, REGION, STACK, BUCKET = "local-chaos", "us-central1", "chaos", "control"
PULUMI: Final = ROOT / ".venv" / "bin" / "pulumi"
#: Until something that must happen has happened, on a slow machine.
SECONDS: Final = 180.0

T: Final = TypeVar("T")


def wait_for(condition: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """Return the condition's first true value. Raises AssertionError after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)
    return value


def say_nothing(_text: str) -> None:
    """Discard the cloud's own output."""


class AcceptedJob(NamedTuple):
    """An accepted job of either service, as the tests read it."""

    job_id: str
    name: str
    labels: dict[str, str]
    state: JobState


class BatchJobs:
    """Batch jobs in the form of Vertex AI jobs."""

    def __init__(self, home: Home) -> None:
        self._table = BatchTable(home)

    def list(self) -> list[AcceptedJob]:
        """Return all jobs, newest first."""
        return [
            AcceptedJob(job.job_id, job.name, job.body["labels"], JobState(STATES[job.state]))
            for job in self._table.list()
        ]

    def delete(self, job_id: str) -> None:
        """Remove a job and its tasks."""
        for job in self._table.list():
            if job.job_id == job_id:
                self._table.delete(job)


@dataclass
class Arena:
    """One cloud, one project folder, one stack. Use with ``with``."""

    folder: Path
    kind: JobKind = CUSTOM_JOB
    """What the stack submits."""
    home: Home = field(init=False)
    env: dict[str, str] = field(init=False)
    table: FaultTable = field(init=False)
    jobs: RecordTable[Any] | BatchJobs = field(init=False)
    service: backends.BackendJobs = field(init=False)
    _empty: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.home = Home(self.folder / "home", ROOT)
        self.table = FaultTable(self.home.faults)
        if self.kind is BATCH_JOB:
            self.jobs = BatchJobs(self.home)
        else:
            tuning = self.kind is TUNING_JOB
            self.jobs = (TuningTable if tuning else JobTable)(self.home.database)

    @property
    def project(self) -> Path:
        return self.folder / "stack"

    @property
    def checkpoint(self) -> Path:
        """The state file of the stack."""
        return self.home.pulumi / ".pulumi" / "stacks" / "chaos" / f"{STACK}.json"

    def __enter__(self) -> Arena:
        self.folder.mkdir(parents=True, exist_ok=True)
        info = lifecycle.start(self.home, say_nothing)
        store = Store(self.home.database)
        for api in ("aiplatform", "batch", "compute"):
            store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
        self.env = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            **self.home.environment(info.ports),
            "PYTHONPATH": source_path(ROOT),
            # Byte code is compiled once, which saves two thirds of a run's time.
            "PYTHONPYCACHEPREFIX": str(self.folder.parent / "bytecode"),
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
            "CHAOS_KIND": self.kind.message,
        }
        for name in (client.EMULATOR, intent_store.EMULATOR):
            os.environ[name] = self.env[name]
        self.service = backends.connect(PROJECT, REGION, self.kind)
        self._make_bucket()
        shutil.copytree(ROOT / "tests" / "chaos" / "stack", self.project)
        (self.project / ".venv").symlink_to(ROOT / ".venv")
        self.run("stack", "init", STACK)
        self._empty = self.checkpoint.read_bytes()
        # Jobs wait for machines: none runs, so a thousand of them cost nothing.
        self._no_machines()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_all()
        lifecycle.stop(self.home)
        shutil.rmtree(self.home.root, ignore_errors=True)

    def _make_bucket(self) -> None:
        from google.cloud import storage

        storage.Client(project=PROJECT).create_bucket(BUCKET)

    def _no_machines(self) -> None:
        inject(self.home, Fault.parse(service="jobs", kind="stockout", seconds=1e6, times=0))

    # --- commands
    def start(
        self, *words: str, jobs: str, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a pulumi command on the stack in its own process group, with its output
        in a file.
        """
        log = (self.folder / "last.log").open("w")
        with log:
            return subprocess.Popen(
                [PULUMI, *words, "-s", STACK, "--non-interactive"],
                cwd=self.project, env=self.env | {"CHAOS_JOBS": jobs} | (env or {}), text=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def up(
        self, jobs: str, *words: str, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start ``pulumi up``."""
        return self.start("up", "-y", "--skip-preview", *words, jobs=jobs, env=env)

    def run(self, *words: str) -> None:
        """Run a pulumi command that must succeed."""
        subprocess.run(
            [PULUMI, *words, "--non-interactive"], cwd=self.project, env=self.env, check=True,
            capture_output=True,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Return the exit code of a command after its end. Raises AssertionError if it hangs."""
        try:
            return process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            kill(process)
            raise AssertionError(f"{process.args} hangs") from None

    def said(self) -> str:
        """Return the output of the last command."""
        return (self.folder / "last.log").read_text()

    # --- faults
    def fault(self, service: str, kind: str, **given: Any) -> int:
        """Add a fault; a fault on a method of CustomJobs is applied to the arena's kind of job."""
        if "method" in given:
            given["method"] = given["method"].replace(CUSTOM_JOB.message, self.kind.message)
        return inject(self.home, Fault.parse(service=service, kind=kind, **given))

    def no_faults(self) -> None:
        """Remove all faults except the stock-out."""
        for entry in self.table.entries():
            if entry.fault.kind != "stockout":
                self.table.clear(entry.id)

    # --- what there is
    def request_id(self, job: str) -> str:
        """Return the request id of ``name:version:run``."""
        return self.kind.id_prefix + job.replace(":", "-")

    def submitted(self, request_id: str) -> list[Any]:
        """Return all jobs that the cloud ever accepted for a request."""
        label = self.kind.sent_label(REQUEST_ID_LABEL)
        return [job for job in self.jobs.list() if job.labels.get(label) == request_id]

    def live(self, request_id: str) -> list[str]:
        """Return ids of active jobs."""
        return [j.job_id for j in self.submitted(request_id) if j.state.value not in TERMINAL]

    def cancelled_trials(self) -> list[str]:
        """Return ids of cancelled trials; a running tuning job cancels no trial."""
        if self.kind is not TUNING_JOB:
            return []
        going_on = [job.job_id for job in self.jobs.list() if job.state.value not in TERMINAL]
        trials = [t for id_ in going_on for t in TuningTable(self.home.database).trials(id_)]
        records = [JobTable(self.home.database).get(trial.job_id) for trial in trials]
        return [job.job_id for job in records if job and "CANCEL" in job.state.value]

    def in_state(self, checkpoint: Path | None = None) -> dict[str, str]:
        """Return request id and job id of each job in the stack's state, or in a copy of
        the state.
        """
        text = (checkpoint or self.checkpoint).read_text()
        latest = json.loads(text)["checkpoint"]["latest"] or {}
        return {
            found["outputs"]["requestId"]: found["id"].rpartition("/")[2]
            for found in latest.get("resources", [])
            if "requestId" in found.get("outputs", {})
        }

    # --- cleaning up
    def unlock(self) -> None:
        """Remove locks of killed commands, as ``vt up`` does after their end."""
        shutil.rmtree(self.home.pulumi / ".pulumi" / "locks", ignore_errors=True)
        locks.remove_truncated(f"file://{self.home.pulumi}", "chaos", STACK, say_nothing)

    def end_all(self) -> None:
        """End orphaned providers, and other processes of killed commands."""
        end_orphaned_plugins(self.home)

    def reset(self) -> None:
        """Reset state, faults and jobs; records of submissions stay, because names differ."""
        self.end_all()
        self.unlock()
        self.no_faults()
        for job in self.jobs.list():
            if not job.state.terminal:
                self.service.cancel(job.name)
        wait_for(lambda: all(job.state.terminal for job in self.jobs.list()), "jobs end")
        trials = JobTable(self.home.database)
        wait_for(lambda: all(job.state.terminal for job in trials.list()), "trials end")
        for table in (self.jobs, trials):
            for job in table.list():
                table.delete(job.job_id)
        self.forget_state()

    def forget_state(self) -> None:
        """Restore the initial state of the stack."""
        self.checkpoint.write_bytes(self._empty)


def kill(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    """Send a signal to the CLI process only, if it still runs."""
    if process.poll() is None:
        os.kill(process.pid, number)
