"""How a job ends, with which state, code and words, whatever ended its replicas."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers.host import ContainerHost
from localgcp.errors import (
    CommandNotFoundError,
    ImageError,
    JobCancelledError,
    StartRefusedError,
)
from localgcp.faults.jobs import JobFaults
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner import job as runner
from localgcp.runner.gang.life_cycle import Action, Decision, End
from localgcp.runner.job import JobRun
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row

CHIEF, WORKER = "workerpool0-0", "workerpool1-0"
SUCCEED = Decision(Action.SUCCEED)
POOLS = [{"replicaCount": "1", "machineSpec": {"machineType": "n1-standard-4"},
          "containerSpec": {"imageUri": "x", "command": ["true"]}}]  # fmt: skip


class Ended:
    """A job whose replicas end as a test says; ``raises`` is what making them ready raises."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.jobs = Home(root, root), JobTable(root / "cloud.sqlite")
        self.store, self.table = Store(self.jobs.path), FaultTable(root / "faults.sqlite")
        self.cancelled, self.stopping = threading.Event(), threading.Event()
        self.decision, self.lost = SUCCEED, ""
        self.raises: Exception | None = None
        self.did: list[str] = []
        self.monkeypatch = monkeypatch

    def run(
        self, state: JobState = JobState.QUEUED, *, trial: str | None = None, **spec: Any
    ) -> bool:
        """What ``execute`` returns."""
        row = job_row("42", {"workerPoolSpecs": POOLS, **spec}, state=state)
        self.jobs.insert(row)
        run = JobRun(
            row, home=self.home, store=self.store, jobs=self.jobs, storage_url="http://s",
            api_url="", faults=JobFaults(self.table), containers=ContainerHost(self.home, 0),
            cancelled=self.cancelled, stopping=self.stopping, trial=trial,
        )  # fmt: skip
        self.monkeypatch.setattr(run, "_run", self.replicas)
        self.monkeypatch.setattr(run.buckets, "close", lambda: self.did.append("close"))
        self.monkeypatch.setattr(run.buckets, "lost", lambda: self.lost)
        return run.execute()

    def replicas(self, members: Any) -> Decision:
        self.did.append(" ".join(each.name for each in members))
        if self.raises:
            raise self.raises
        self.jobs.move("42", JobState.RUNNING)
        return self.decision

    def end(self) -> tuple[str, int | None, str | None]:
        found = self.jobs.get("42")
        assert found is not None
        return found.state.word, found.error_code, found.error_message

    def log(self) -> list[str]:
        text = (self.home.jobs / "42" / "logs" / f"{CHIEF}.log").read_text()
        return [line.partition("] ")[2] for line in text.splitlines()]


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ended:
    return Ended(tmp_path, monkeypatch)


LOGS = "To find out more about why your job exited please check the logs: vt local logs 42"


@pytest.mark.parametrize(
    ("decision", "spec", "state", "code", "text"),
    [
        (Decision(Action.FAIL, (End(CHIEF, 3),)), {}, "FAILED", 3,
         f"The replica {CHIEF} exited with a non-zero status of 3. Termination reason: Error. "
         f"{LOGS}"),
        (Decision(Action.FAIL, (End(CHIEF, 143),), stockout=True), {}, "FAILED", 8,
         "STOCKOUT: Resources are insufficient in region: us-central1."),
        (Decision(Action.FAIL), {"scheduling": {"timeout": "90.5s"}}, "CANCELLED", 1,
         "The job was cancelled: it ran longer than scheduling.timeout (90.5s)."),
    ],
)  # fmt: skip
def test_what_ends_the_replicas_ends_the_job(
    ended: Ended, decision: Decision, spec: dict[str, Any], state: str, code: int, text: str
) -> None:
    ended.decision = decision
    assert ended.run(**spec) is True
    assert ended.end() == (state, code, text)
    assert ended.log() == [f"job 42 {state}: {text}"]
    assert ended.did[-1] == "close"


@pytest.mark.parametrize(
    ("raises", "code", "text"),
    [
        (StartRefusedError(7, "no right"), 7, "no right"),
        (ImageError("no image"), 9, "no image"),
        (CommandNotFoundError("x: none"), 3,
         f"The replica {CHIEF} could not be started: x: none."),
        (CommandNotFoundError("x: none", WORKER), 3,
         f"The replica {WORKER} could not be started: x: none."),
    ],
)  # fmt: skip
def test_what_cannot_be_started_fails_the_job(
    ended: Ended, raises: Exception, code: int, text: str
) -> None:
    ended.raises = raises
    assert ended.run() is True
    assert ended.end() == ("FAILED", code, text)
    assert ended.did == [CHIEF, "close"]


def test_what_this_machine_does_not_run_fails_before_anything_is_ready(ended: Ended) -> None:
    many = [{**POOLS[0], "replicaCount": "17"}]
    assert ended.run(workerPoolSpecs=many) is True
    assert ended.end()[:2] == ("FAILED", 9)
    assert ended.did == []


def test_replicas_that_do_not_fit_into_the_memory_fail_the_job(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = SimpleNamespace(available=511 << 20)
    monkeypatch.setattr(runner.psutil, "virtual_memory", lambda: free)
    ended.run(workerPoolSpecs=[{**POOLS[0], "replicaCount": "2"}])
    assert ended.end()[:2] == ("FAILED", 9)
    assert "2 replicas take 512 MiB" in str(ended.end()[2])


def test_a_stock_out_fails_the_job_and_a_reservation_lets_it_wait(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended.table.add(Fault.parse(service="jobs", kind="stockout"))
    ended.run()
    assert ended.end()[:2] == ("FAILED", 8)
    ended.jobs.delete("42")
    monkeypatch.setattr(runner.machines, "claim_machines", lambda *_: False)
    assert ended.run() is False
    assert ended.end() == ("PENDING", None, None)
    assert ended.did == []


def test_a_job_that_was_cancelled_before_its_turn_does_not_run(ended: Ended) -> None:
    assert ended.run(JobState.CANCELLING) is True
    assert ended.end() == ("CANCELLED", 1, "The job was cancelled.")
    assert ended.did == []


CANCELLED = ("CANCELLED", 1, "The job was cancelled.")
STOPPED = (
    "FAILED",
    14,
    "The local cloud was stopped while the job ran; submit it again (a new run).",
)


@pytest.mark.parametrize(
    ("stopping", "state", "trial", "end"),
    [
        (False, JobState.CANCELLING, None, CANCELLED),
        (True, JobState.CANCELLING, None, CANCELLED),
        (True, JobState.RUNNING, None, STOPPED),
        (True, JobState.PENDING, None, ("QUEUED", None, None)),
        (True, JobState.RUNNING, "1", ("QUEUED", None, None)),
        (True, JobState.CANCELLING, "1", CANCELLED),
    ],
)
def test_a_cancel_ends_a_job_and_a_stop_leaves_what_had_not_begun(
    ended: Ended,
    monkeypatch: pytest.MonkeyPatch,
    stopping: bool,
    state: JobState,
    trial: str | None,
    end: tuple[str, int | None, str | None],
) -> None:
    def cancel(_members: Any) -> Decision:
        ended.jobs.move("42", state)
        if stopping:
            ended.stopping.set()
        raise JobCancelledError

    monkeypatch.setattr(ended, "replicas", cancel)
    assert ended.run(trial=trial) is True
    assert ended.end() == end
