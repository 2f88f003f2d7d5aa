"""Replicas of an attempt: what ends it, what follows, and what each of them finds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import JobCancelledError
from localgcp.runner import replica
from localgcp.runner.environment import Folders
from localgcp.runner.gang import running
from localgcp.runner.gang.life_cycle import Action, Decision, End, LifeCycle
from localgcp.runner.gang.running import Gang, Member
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.runner.replica import Ending, Outcome

CHIEF, WORKER, OTHER = "workerpool0-0", "workerpool1-0", "workerpool1-1"


@dataclass
class Ports:
    """What the gang asks of its job, noted."""

    may_begin: bool = True
    lost: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])

    def began(self) -> bool:
        self.said.append("began")
        return self.may_begin

    def paused(self) -> None:
        self.said.append("paused")

    def preempted(self, ran_seconds: float) -> Sequence[str]:
        assert ran_seconds >= 0
        found, self.lost = self.lost, []
        return found

    def killed(self, name: str, ran_seconds: float) -> bool:
        return (name, ran_seconds) == (CHIEF, 7.0)

    def tick(self) -> None:
        self.said.append("tick")


class Replicas:
    """A gang whose processes end as the test says: code, or an exception, or never."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.ports = root, Ports()
        self.ends: dict[str, list[Any]] = {}
        self.given: list[dict[str, Any]] = []
        self.cancelled = threading.Event()
        self.lock = threading.Lock()
        monkeypatch.setattr(replica, "run", self.run)
        monkeypatch.setattr(running, "_SETTLE_SECONDS", 0.1)
        monkeypatch.setattr(running, "_POLL_SECONDS", 0.02)

    def run(self, argv: list[str], **given: Any) -> Outcome:
        with self.lock:
            self.given.append({"argv": argv, **given})
            end = self.ends[argv[0]].pop(0)
        if isinstance(end, BaseException):
            raise end
        if end is None:
            given["cancelled"].wait(20)
            return Outcome(Ending.CANCELLED, 143)
        return Outcome(Ending.EXITED, end)

    def gang(self, timeout: float = 60.0, life: LifeCycle | None = None, **ends: Any) -> Gang:
        """Of the replicas ``chief``, ``worker`` and ``other``, as far as they have ends."""
        names = {"chief": CHIEF, "worker": WORKER, "other": OTHER}
        self.ends = {names[name]: list(codes) for name, codes in ends.items()}
        return Gang(
            members=[self.member(name) for name in self.ends],
            life=life or LifeCycle(CHIEF),
            ports=self.ports,
            notes=self.root / "notes",
            cancelled=self.cancelled,
            timeout_seconds=timeout,
        )

    def member(self, name: str) -> Member:
        base = self.root / name
        folders = Folders(work=base / "work", tmp=base / "tmp", gcs=self.root / "gcs")
        for folder in (folders.work, folders.tmp, base / "root"):
            folder.mkdir(parents=True)
            (folder / "left").touch()
        log = JobLog(self.root / "logs" / f"{name}.log")
        return Member(name, folders, log, lambda: Launch([name], {"A": name}, 0o022), f"{name}@x")

    def log(self, name: str = CHIEF) -> list[str]:
        file = self.root / "logs" / f"{name}.log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition("] ")[2] for line in lines]


@pytest.fixture
def replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replicas:
    return Replicas(tmp_path, monkeypatch)


def test_a_killed_replica_begins_again_alone_with_an_empty_disk(replicas: Replicas) -> None:
    gang = replicas.gang(chief=[None], worker=[137, 1])
    assert gang.run() == Decision(Action.FAIL, (End(WORKER, 1),))
    assert replicas.log() == [f"{WORKER} was killed (restart 1 of 5)"]
    assert [given["argv"] for given in replicas.given].count([CHIEF]) == 1
    for folder in ("work", "tmp"):
        assert list((replicas.root / WORKER / folder).iterdir()) == []
        assert (replicas.root / CHIEF / folder / "left").exists()
    assert replicas.ports.said == ["began", "tick"]


def test_a_retry_of_the_job_is_told_and_begins_with_empty_disks(replicas: Replicas) -> None:
    gang = replicas.gang(chief=[6, 0], worker=[None, None])
    assert gang.run() == Decision(Action.SUCCEED)
    assert replicas.ports.said == ["began", "tick", "paused", "began", "tick"]
    text = f"{CHIEF} exited with status 6: the whole job is retried (1 of 3)"
    assert text in replicas.log()
    assert list((replicas.root / WORKER / "work").iterdir()) == []


def test_a_preemption_begins_anew_and_at_last_fails(replicas: Replicas) -> None:
    replicas.ports.lost = [WORKER]
    gang = replicas.gang(chief=[None, 0], worker=[None, None])
    assert gang.run() == Decision(Action.SUCCEED)
    assert replicas.log()[0] == f"preempted: {WORKER} lost its machine (1 of 6)"
    assert replicas.ports.said == ["began", "tick", "paused", "began", "tick"]


def test_a_job_that_must_not_run_starts_nothing(replicas: Replicas) -> None:
    replicas.ports.may_begin = False
    with pytest.raises(JobCancelledError):
        replicas.gang(chief=[0]).run()
    replicas.cancelled.set()
    with pytest.raises(JobCancelledError):
        replicas.gang(worker=[0]).run()
    assert (replicas.given, replicas.ports.said) == ([], ["began"])
