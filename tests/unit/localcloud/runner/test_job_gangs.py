"""What the replicas of a job are made of: programs, folders, hosts, variables and logs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.host import ContainerHost
from localgcp.errors import CommandNotFoundError
from localgcp.faults.jobs import JobFaults
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, Store, project_number
from localgcp.runner import job as runner
from localgcp.runner.environment import Folders
from localgcp.runner.gang.hosts import BucketView, Host
from localgcp.runner.gang.life_cycle import Action, Decision, LifeCycle
from localgcp.runner.gang.running import Member
from localgcp.runner.job import JobRun
from localgcp.runner.programs import ContainerProgram, HostProgram
from localgcp.vertex.records import JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

CHIEF, WORKER = "workerpool0-0", "workerpool1-0"
NUMBER = project_number(PROJECT)


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


def test_a_single_replica_has_the_folders_of_the_job(job: Job) -> None:
    scheduling = {"timeout": "90s", "disableRetries": True}
    assert job.execute(scheduling=scheduling) == "SUCCEEDED"
    folders = Folders(job.folder / "work", job.folder / "tmp", job.folder / "gcs")
    log = job.prepared.pop("log")
    assert log.path == job.folder / "logs" / f"{CHIEF}.log"
    record = job.prepared.pop("record")
    assert record.job_id == "42"
    assert job.prepared == {
        "folder": job.folder,
        "tmp": folders.tmp,
        "storage_url": "http://s",
        "own_mount": True,
        "containers": job.containers,
        "home": job.home,
        "cancelled": job.cancelled,
    }
    assert job.programs == [(CHIEF, folders, True)]
    assert folders.work.is_dir()
    assert folders.tmp.is_dir()
    assert job.chosen == [("42", [CHIEF], True)]
    assert job.given["life"] == LifeCycle(CHIEF, disable_retries=True)
    assert {key: job.given[key] for key in ("notes", "cancelled", "timeout_seconds")} == {
        "notes": job.home.children, "cancelled": job.cancelled, "timeout_seconds": 90.0,
    }  # fmt: skip
    only = member(job)
    assert (only.name, only.folders, only.account) == (CHIEF, folders, "")
    assert only.log is log
    assert job.given["ports"]._names == [CHIEF]
    assert job.closed == [CHIEF]


def test_a_replica_gets_the_services_variables_and_its_own(job: Job) -> None:
    job.execute()
    [launch] = job.launches
    assert launch.argv == ["at", "127.64.0.1:2222", "train", "42"]
    assert json.loads(launch.env["CLUSTER_SPEC"])["cluster"] == {"workerpool0": ["127.64.0.1:2222"]}
    rest = {key: text for key, text in launch.env.items() if key != "CLUSTER_SPEC"}
    assert rest == {
        "PATH": "/none",
        "HOME": str(job.folder / "work"),
        "TMPDIR": str(job.folder / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "STORAGE_EMULATOR_HOST": "http://s",
        "MINE": "42",
        "PYTHONPATH": str(job.folder / "tmp" / "python"),
        "CLOUD_ML_PROJECT_ID": NUMBER,
        "CLOUD_ML_JOB_ID": "42",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": "http://127.0.0.1:9/",
        "BIGQUERY_EMULATOR_HOST": "http://127.0.0.1:9",
        "VERTEX_EMULATOR_HOST": "127.0.0.1:9",
    }
    hosts = {CHIEF: Host("127.64.0.1", 2222)}
    assert job.on[1:] == [
        (job.folder / "hosts", hosts),
        ("127.64.0.1:2222", job.folder / "hosts", str(job.folder / "work"), job.folder / "work",
         job.view),
    ]  # fmt: skip


def test_replicas_have_folders_and_logs_of_their_own_and_one_of_buckets(job: Job) -> None:
    job.store.put(ACCOUNT, "a@b", PROJECT, {}, {"email": "a@b"})
    assert job.execute(pools=2, serviceAccount="a@b") == "SUCCEEDED"
    expected = {
        name: Folders(
            job.folder / "replicas" / name / "work",
            job.folder / "replicas" / name / "tmp",
            job.folder / "gcs",
        )
        for name in (CHIEF, WORKER)
    }
    assert job.programs == [(name, folders, False) for name, folders in expected.items()]
    assert job.prepared["tmp"] == expected[CHIEF].tmp
    for index, (name, folders) in enumerate(expected.items()):
        found = member(job, index)
        assert (found.name, found.folders, found.account) == (name, folders, "a@b")
        assert found.log.path == job.folder / "logs" / f"{name}.log"
    assert member(job).log is job.prepared["log"]
    assert job.chosen == [("42", [CHIEF, WORKER], True)]
    assert job.given["ports"]._names == [CHIEF, WORKER]
    spec = json.loads(job.launches[1].env["CLUSTER_SPEC"])
    assert spec["cluster"] == {
        "workerpool0": ["127.64.0.1:2222"], "workerpool1": ["127.64.0.2:2222"],
    }  # fmt: skip
    assert spec["task"] == {"type": "workerpool1", "index": 0}
    assert job.given["timeout_seconds"] == 604_800.0


def test_with_a_container_among_them_replicas_have_no_host_names(job: Job) -> None:
    job.container = {WORKER}
    assert job.execute(pools=2) == "SUCCEEDED"
    assert job.chosen == [("42", [CHIEF, WORKER], False)]
    # A container has its buckets by the engine.
    assert [each[4] for each in job.on[2:]] == [job.view, None]
    assert job.closed == [WORKER, CHIEF]


def test_without_mounts_a_path_stands_for_the_buckets(job: Job) -> None:
    job.view = None
    job.execute()
    assert job.prepared["own_mount"] is False
    assert job.on[-1][4] is None


def test_a_trial_reports_its_metrics_into_the_folder_of_its_job(job: Job) -> None:
    job.execute(trial="3")
    env = job.launches[0].env
    file = job.folder / "gcs" / ".hypertune" / f"{CHIEF}.metrics"
    assert (env["CLOUD_ML_TRIAL_ID"], env["CLOUD_ML_HP_METRIC_FILE"]) == ("3", str(file))
    assert file.parent.is_dir()
    member(job).launch()  # again, after a restart


def test_a_program_that_is_not_there_is_named_with_its_replica(job: Job) -> None:
    choose: Callable[..., dict[str, Host]] = job.choose

    def far(job_id: str, members: Any, *, named: bool) -> dict[str, Host]:
        return {**choose(job_id, members, named=named), WORKER: Host("127.64.0.9", 2222)}

    job.monkeypatch.setattr(runner.hosts, "choose", far)
    assert job.execute(pools=2) == (f"FAILED The replica {WORKER} could not be started: none.")
    assert job.closed == [WORKER, CHIEF]
