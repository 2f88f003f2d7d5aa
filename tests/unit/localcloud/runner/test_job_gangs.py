"""What the replicas of a job are made of: programs, folders, hosts, variables and logs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.host import ContainerHost
from localgcp.errors import CommandNotFoundError
from localgcp.faults.jobs import JobFaults
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner import job as runner
from localgcp.runner.environment import Folders
from localgcp.runner.gang.hosts import BucketView, Host
from localgcp.runner.gang.life_cycle import Action, Decision
from localgcp.runner.gang.running import Member
from localgcp.runner.job import JobRun
from localgcp.runner.programs import ContainerProgram, HostProgram
from localgcp.vertex.records import JobTable
from tests.unit.localcloud.vertex.rows import job_row

CHIEF, WORKER = "workerpool0-0", "workerpool1-0"


class Job:
    """A job 42 whose gang notes what it is given, and launches each of its members."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.jobs = Home(root, root), JobTable(root / "cloud.sqlite")
        self.store, self.monkeypatch = Store(self.jobs.path), monkeypatch
        self.cancelled, self.containers = threading.Event(), ContainerHost(self.home, 0)
        self.folder = self.home.jobs / "42"
        self.prepared: dict[str, Any] = {}
        self.programs: list[tuple[str, Folders, bool]] = []
        self.chosen: list[Any] = []
        self.given: dict[str, Any] = {}
        self.launches: list[Any] = []
        self.on: list[Any] = []
        self.closed: list[str] = []
        self.container: set[str] = set()
        self.view: BucketView | None = BucketView(self.folder / "gcs")
        monkeypatch.setenv("PATH", "/none")
        monkeypatch.setattr(runner, "Preparation", self.preparation)
        monkeypatch.setattr(runner, "Gang", self.gang)
        monkeypatch.setattr(runner.hosts, "choose", self.choose)
        monkeypatch.setattr(runner.hosts, "write_hosts", lambda *given: self.on.append(given))
        monkeypatch.setattr(runner.hosts, "command_on", self.command_on)

    def preparation(self, record: Any, **given: Any) -> Job:
        self.prepared = {"record": record, **given}
        return self

    def program(self, member: Any, folders: Folders, *, alone: bool) -> Any:
        self.programs.append((member.name, folders, alone))
        made: Any = HostProgram(["train", "$(MINE)"], "/none", folders, "http://s")
        if member.name in self.container:
            made = ContainerProgram.__new__(ContainerProgram)
            made.launch = HostProgram(["in"], "/none", folders, "http://s").launch
        made.close = lambda: self.closed.append(member.name)
        return made

    def choose(self, job_id: str, members: Any, *, named: bool) -> dict[str, Host]:
        names = [each.name for each in members]
        self.chosen.append((job_id, names, named))
        return {name: Host(f"127.64.0.{at}", 2222) for at, name in enumerate(names, start=1)}

    def command_on(
        self, host: Host, file: Path, argv: list[str], env: Any, *, work: Path, buckets: Any
    ) -> list[str]:
        if host.address.endswith("9"):
            raise CommandNotFoundError("none")
        self.on.append((host.entry, file, env["HOME"], work, buckets))
        return ["at", host.entry, *argv]

    def gang(self, **given: Any) -> Job:
        self.given = given
        return self

    def run(self) -> Decision:
        for member in self.given["members"]:
            self.launches.append(member.launch())
        return Decision(Action.SUCCEED)

    def execute(self, *, trial: str | None = None, pools: int = 1, **spec: Any) -> str:
        """The state that the job ends in."""
        env = [{"name": "MINE", "value": "$(CLOUD_ML_JOB_ID)"}]
        task = {"imageUri": "x", "command": ["train"], "env": env}
        whole = {
            "workerPoolSpecs": [{"machineSpec": {"machineType": "n1"}, "containerSpec": task}]
            * pools,
            **spec,
        }
        row = job_row("42", whole)
        self.jobs.insert(row)
        made = JobRun(
            row, home=self.home, store=self.store, jobs=self.jobs, storage_url="http://s",
            api_url="http://127.0.0.1:9/", faults=JobFaults(FaultTable(self.home.faults)),
            containers=self.containers, cancelled=self.cancelled, stopping=threading.Event(),
            trial=trial,
        )  # fmt: skip
        made.buckets.view = self.view
        self.monkeypatch.setattr(made.buckets, "prepare", lambda *given: self.on.append(given))
        self.monkeypatch.setattr(made.buckets, "close", lambda: None)
        self.monkeypatch.setattr(made.buckets, "lost", lambda: "")
        (self.folder / "gcs").mkdir(exist_ok=True)
        assert made.execute()
        found = self.jobs.get("42")
        assert found is not None
        return f"{found.state.word} {found.error_message or ''}".strip()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(tmp_path, monkeypatch)


def member(job: Job, index: int = 0) -> Member:
    return job.given["members"][index]


def test_a_trial_reports_its_metrics_into_the_folder_of_its_job(job: Job) -> None:
    job.execute(trial="3")
    env = job.launches[0].env
    file = job.folder / "gcs" / ".hypertune" / f"{CHIEF}.metrics"
    assert (env["CLOUD_ML_TRIAL_ID"], env["CLOUD_ML_HP_METRIC_FILE"]) == ("3", str(file))
    assert file.parent.is_dir()
    member(job).launch()  # again, after a restart
