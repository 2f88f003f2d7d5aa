"""A job of Batch from the exit codes of its tasks to its end; no program runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.batch.records import BatchJob, BatchTable, Clock, State
from localgcp.batch.run import BatchRun, JobFaults
from localgcp.batch.runnables import Machine
from localgcp.containers.host import ContainerHost
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, inject
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner import replica
from localgcp.runner.environment import Folders
from localgcp.runner.gang.hosts import Host
from tests.unit.localcloud.batch.rows import NOW, PLACE, batch_row

#: A thread of a job that ends with an exception fails its test.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

AT = "on zones/us-central1-a/instances/N"
FAILED = "Job failed due to task failure. Specifically, task with index {} failed due to the "


class Tried:
    """One try at a task that ends with this code."""

    def __init__(self, code: int | Exception | None, work: Path, run: BatchRun) -> None:
        self._code, self._work, self._run = code, work, run

    def run(self) -> int | None:
        (self._work / "left").touch()
        if isinstance(self._code, Exception):
            raise self._code
        if self._code is None:
            self._run.ending.set()
        return self._code


class Ran:
    """A job whose tries end with these codes; ``disks`` is what each found on its disk."""

    def __init__(self, home: Home, job: BatchJob, *codes: int | Exception | None) -> None:
        self.jobs, self.job = BatchTable(home), job
        assert self.jobs.insert(job)
        self.run = BatchRun(
            job, home=home, store=Store(home.database), jobs=self.jobs, storage_url="",
            api_url="", faults=FaultTable(home.faults), containers=ContainerHost(home, 0),
        )  # fmt: skip
        self.disks: list[list[str]] = []
        self.tries: list[tuple[int, int]] = []
        left = [*codes]

        def attempt(number: int, _node: int, _host: Any, folders: Any, retries: int) -> Tried:
            self.tries.append((number, retries))
            self.disks.append(sorted(each.name for each in folders.work.iterdir()))
            base = home.batch / job.uid
            task = base / "tasks" / str(number)
            assert folders == Folders(task / "work", task / "tmp", base / "gcs")
            return Tried(left.pop(0), folders.work, self.run)

        self.run._attempt = attempt  # pyright: ignore[reportAttributeAccessIssue]

    def events(self) -> list[str]:
        """Of the job."""
        found = self.jobs.get(self.job.name)
        assert found is not None
        return [_even(each["description"]) for each in found.events]

    def tasks(self) -> list[tuple[str, list[str]]]:
        """State of each task, and what became of it."""
        return [
            (task.state, [_even(each["description"]) for each in task.events])
            for task in self.jobs.tasks(self.job.uid)
        ]

    def log(self) -> list[str]:
        lines = self.run.agent.path.read_text().splitlines()
        return [_even(each.partition("] ")[2]) for each in lines]


def _even(text: str) -> str:
    return re.sub(r"instances/\d{1,19}\b", "instances/N", text)


def moved(origin: str, to: str, more: str = f" {AT}") -> str:
    return f"Task state is updated from {origin} to {to}{more}."


def ended(to: str, why: str = "", origin: str = "RUNNING") -> str:
    return f"Job state is set from {origin} to {to} for job {PLACE}/j.{why and f' {why}'}"


BEGUN = [moved("PENDING", "ASSIGNED"), moved("ASSIGNED", "RUNNING")]
RUNS = ended("RUNNING", origin="SCHEDULED")


@pytest.fixture
def ran(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW)

    def make(*codes: int | Exception | None, stopping: bool = False, **more: Any) -> Ran:
        made = Ran(home, batch_row(state=State.SCHEDULED, **more), *codes)
        made.run.stopping = stopping
        made.run.execute()
        return made

    return make


def test_a_job_whose_task_ends_with_zero_has_succeeded(ran: Callable[..., Ran]) -> None:
    done = ran(0)
    assert done.events() == [RUNS, ended("SUCCEEDED")]
    assert done.tasks() == [("SUCCEEDED", [*BEGUN, moved("RUNNING", "SUCCEEDED")])]
    assert done.log() == ["job j SUCCEEDED"]
    assert done.run.folder.stat().st_mode & 0o777 == 0o700


def test_a_task_that_fails_fails_the_job_and_what_has_not_begun(ran: Callable[..., Ran]) -> None:
    done = ran(0, 7, group={"taskCount": "3"})
    text = moved("RUNNING", "FAILED", f" {AT} with exit code 7")
    why = FAILED.format(1) + f'following task event: "{text}"'
    assert done.events() == [RUNS, ended("FAILED", why)]
    assert done.tasks() == [
        ("SUCCEEDED", [*BEGUN, moved("RUNNING", "SUCCEEDED")]),
        ("FAILED", [*BEGUN, text]),
        ("UNEXECUTED", []),
    ]
    assert done.log() == [f"job j FAILED: {why}"]


@pytest.mark.parametrize(
    ("code", "found", "why"),
    [(7, ["left"], ""), (50001, [], " due to Spot VM preemption")],
)
def test_a_task_is_tried_again_on_its_disk_unless_the_machine_is_lost(
    ran: Callable[..., Ran], code: int, found: list[str], why: str
) -> None:
    done = ran(code, 0, maxRetryCount=1)
    assert (done.tries, done.disks) == ([(0, 0), (0, 1)], [[], found])
    [(_, events)] = done.tasks()
    assert events == [
        *BEGUN,
        moved("RUNNING", "FAILED", f" {AT}{why} with exit code {code}"),
        moved("FAILED", "PENDING", ""),
        *BEGUN,
        moved("RUNNING", "SUCCEEDED"),
    ]
    assert done.log()[0] == f"task 0 is tried again (1): exit code {code}"
    assert done.events() == [RUNS, ended("SUCCEEDED")]


@pytest.mark.parametrize(("stopping", "code"), [(False, 50000), (True, 50002)])
def test_a_task_that_the_job_ends_has_failed_and_another_decides_on_the_job(
    ran: Callable[..., Ran], stopping: bool, code: int
) -> None:
    done = ran(None, stopping=stopping)
    [(state, events)] = done.tasks()
    assert (state, events[-1]) == (
        "FAILED",
        moved("RUNNING", "FAILED", f" {AT} with exit code {code}"),
    )
    assert done.tries == [(0, 0)]
    assert done.events() == [RUNS]


def test_a_mistake_of_the_runner_is_told_and_nothing_hangs(
    ran: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    done = ran(ValueError("x"), maxRetryCount=3)
    why = "Job failed due to task failure. Internal error of the local cloud: ValueError."
    assert done.events() == [RUNS, ended("FAILED", why)]
    [(_, events)] = done.tasks()
    assert events == [*BEGUN, moved("RUNNING", "FAILED", f" {AT} with exit code 50000")]
    assert "ValueError: x" in capsys.readouterr().err


def test_a_bucket_that_cannot_be_mounted_fails_the_job_before_its_tasks(
    ran: Callable[..., Ran],
) -> None:
    volume = {"gcs": {"remotePath": "none"}, "mountPath": "/gcs/none"}
    done = ran(volumes=[volume])
    text = "gs://none cannot be mounted: it does not exist."
    assert done.events() == [ended("FAILED", f"Job failed: {text}", "SCHEDULED")]
    assert done.tasks() == [("UNEXECUTED", [])]
    assert done.log() == [text, f"job j FAILED: Job failed: {text}"]


def test_a_mistake_beside_the_tasks_is_told_too(
    ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def machines(_run: BatchRun, _width: int) -> Any:
        raise LookupError("x")

    monkeypatch.setattr(BatchRun, "_machines", machines)
    why = "Internal error of the local cloud: LookupError."
    assert ran().events() == [ended("FAILED", why, "SCHEDULED")]
    assert "LookupError: x" in capsys.readouterr().err


def test_a_try_has_a_machine_and_variables_of_its_own(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [{"variables": {"A": "0"}}, {"variables": {"A": "1"}}]
    job = batch_row(group={"taskCount": "2", "taskEnvironments": own})
    store, containers = Store(home.database), ContainerHost(home, 0)
    run = BatchRun(
        job, home=home, store=store, jobs=BatchTable(home), storage_url="http://s",
        api_url="http://a/", faults=FaultTable(home.faults), containers=containers,
    )  # fmt: skip
    folders, host = Folders(home.root, home.batch, home.jobs), Host("127.0.0.1", 1)
    made = run._attempt(1, 4, host, folders, 2)
    assert made.machine == Machine(
        job, home, store, containers, "http://s", run.volumes, folders, host, own[1],
        made.machine.run, run.agent.append,
    )  # fmt: skip
    assert made.service == {
        "BATCH_TASK_INDEX": "1", "BATCH_TASK_COUNT": "2", "BATCH_NODE_INDEX": "4",
        "BATCH_TASK_RETRY_ATTEMPT": "2", "BATCH_JOB_UID": "u-j", "VERTEX_EMULATOR_HOST": "a",
        "BIGQUERY_EMULATOR_HOST": "http://a",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": "http://a/",
    }  # fmt: skip
    assert (made.number, made.log.path, made.barriers, made.ending) == (
        1, home.batch / "u-j" / "logs" / "task-1.log", run._barriers, run.ending,
    )  # fmt: skip
    inject(home, Fault.parse(service="jobs", kind="kill", replica="task-1", seconds=3))
    assert [made.killed(2.0), made.killed(3.0), made.preempted(9.0)] == [False, True, False]
    asked: list[Any] = []

    def start(command: list[str], **options: Any) -> Any:
        asked.append((command, options))
        return SimpleNamespace(code=3)

    monkeypatch.setattr(replica, "run", start)
    assert made.machine.run(["pull"], {"B": "2"}) == 3
    [(command, options)] = asked
    assert (command, options) == (
        ["pull"],
        {
            "env": {"B": "2"}, "cwd": home.batch, "log": run.agent, "notes": home.children,
            "cancelled": run.ending,
        },
    )  # fmt: skip
    alone = BatchRun(
        batch_row(), home=home, store=store, jobs=run.jobs, storage_url="", api_url="",
        faults=FaultTable(home.faults), containers=containers,
    )  # fmt: skip
    assert alone._attempt(0, 0, host, folders, 0).machine.of_task == {}


@pytest.mark.parametrize(
    ("locations", "zone"),
    [
        (("regions/us-central1",), "us-central1-a"),
        (("regions/us-central1", "zones/us-central1-f", "zones/us-central1-b"), "us-central1-f"),
    ],
)
def test_machines_are_in_the_first_zone_that_is_allowed(
    ran: Callable[..., Ran], locations: tuple[str, ...], zone: str
) -> None:
    [(_, events)] = ran(0, locations=locations).tasks()
    assert events[0].endswith(f" on zones/{zone}/instances/N.")


@pytest.mark.usefixtures("server_umask")
@pytest.mark.parametrize("is_asked_for", [True, False])
def test_the_hosts_file_is_there_for_those_that_ask(home: Home, is_asked_for: bool) -> None:
    run = Ran(home, batch_row(group={"requireHostsFile": is_asked_for})).run
    assert run._machines(1) == [Host("127.0.0.1", 2222, "localhost")]
    file = run.volumes.hosts_file
    if is_asked_for:  # also for containers, whose user is another
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("localhost\n", 0o644)
    else:
        assert not file.exists()


class Slow:
    """A task that runs until its job is ended; each look at it takes ``step``."""

    def __init__(self, run: BatchRun, pass_time: Callable[[], None]) -> None:
        self._run, self._pass_time, self.looks = run, pass_time, 0

    def is_alive(self) -> bool:
        return not self._run.ending.is_set()

    def join(self, _seconds: float) -> None:
        self.looks += 1
        self._pass_time()


A3, ALONE = {"machineType": "a3-highgpu-8g"}, {"reservation": "NO_RESERVATION"}


@pytest.mark.parametrize(
    ("policy", "days"),
    [
        ({"provisioningModel": "STANDARD"}, 14),
        ({"provisioningModel": "SPOT"}, 14),
        ({}, 14),
        ({"provisioningModel": "FLEX_START"}, 7),
        (A3, 14),
        (A3 | {"reservation": "projects/p/zones/z/reservations/r"}, 14),
        (A3 | ALONE, 7),
        (A3 | ALONE | {"provisioningModel": "STANDARD"}, 7),
        (A3 | ALONE | {"provisioningModel": "SPOT"}, 14),
        ({"machineType": "a2-highgpu-1g"} | ALONE, 14),
    ],
)
def test_a_job_runs_for_fourteen_days_at_most_and_seven_where_machines_are_scarce(
    home: Home, monkeypatch: pytest.MonkeyPatch, policy: dict[str, str], days: int
) -> None:
    later = [timedelta(days=days), timedelta(days=days, microseconds=1)]
    now = [NOW]
    monkeypatch.setattr(Clock, "now", lambda _clock: now[0])
    made = Ran(home, batch_row(policy=policy))

    def pass_time() -> None:
        now[0] = NOW + later.pop(0)

    slow = Slow(made.run, pass_time)
    made.run._watch([slow])  # pyright: ignore[reportArgumentType]
    assert slow.looks == 2
    assert made.run._failure == f"The job ran longer than {days} days."


@pytest.mark.parametrize(
    ("fault", "preempted", "killed"),
    [  # of tasks 0 and 1, after 2 s and after 3 s
        ({"kind": "preempt", "seconds": 3}, [0, 1, 0, 1], [0, 0, 0, 0]),
        ({"kind": "preempt", "seconds": 2}, [1, 1, 1, 1], [0, 0, 0, 0]),
        ({"kind": "preempt", "seconds": 3, "replica": "task-1"}, [0, 0, 0, 1], [0, 0, 0, 0]),
        ({"kind": "kill", "seconds": 3}, [0, 0, 0, 0], [0, 1, 0, 0]),
        ({"kind": "kill", "seconds": 3, "replica": "task-1"}, [0, 0, 0, 0], [0, 0, 0, 1]),
        ({"kind": "kill", "seconds": 3, "match": "u-j"}, [0, 0, 0, 0], [0, 1, 0, 0]),
        ({"kind": "kill", "seconds": 3, "match": "red"}, [0, 0, 0, 0], [0, 1, 0, 0]),
        ({"kind": "kill", "seconds": 3, "match": "team"}, [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_a_fault_is_of_a_task_and_of_a_time(
    home: Home, fault: dict[str, Any], preempted: list[int], killed: list[int]
) -> None:
    inject(home, Fault.parse(service="jobs", times=0, **fault))
    job = batch_row(policy={"provisioningModel": "SPOT"}, body={"labels": {"team": "red"}})
    faults = JobFaults(FaultTable(home.faults), job)
    times = [(number, ran) for number in (0, 1) for ran in (2.0, 3.0)]
    assert [int(faults.preempted(*each)) for each in times] == preempted
    assert [int(faults.killed(*each)) for each in times] == killed
    assert faults.stockout() is None


@pytest.mark.parametrize(
    ("model", "is_lost"),
    [
        ("SPOT", True),
        ("PREEMPTIBLE", True),
        ("STANDARD", False),
        ("FLEX_START", False),
    ],
)
def test_only_machines_that_may_be_taken_away_are(home: Home, model: str, is_lost: bool) -> None:
    inject(home, Fault.parse(service="jobs", kind="preempt"))
    job = batch_row(policy={"provisioningModel": model})
    faults = JobFaults(FaultTable(home.faults), job)
    assert faults.preempted(0, 0.0) is is_lost
    assert faults.preempted(0, 0.0) is False  # once
