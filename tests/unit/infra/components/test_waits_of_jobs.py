"""What a program that waits for jobs shows, and how it ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE, FILE, JOB
from vertex_training import program
from vertex_training.customjob.google import backends, logs
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.engine import MESSAGE_SHOWN
from vertex_training.stack import from_raw

WAITING = {"file": "job.yaml", "wait": "succeeded", "deadline": "30m"}


class Run:
    """A program's run, with jobs that are in one state."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, state: str) -> None:
        self.root, self.state, self.job = root, state, JOB
        self.said: list[str] = []
        self.errors: list[str] = []
        self.asked: list[tuple[Any, ...]] = []
        self.ended: list[int] = []
        patch.setattr(sys, "exit", self.ended.append)
        patch.setattr(pulumi.log, "info", lambda text, *_, **__: self.said.append(text))
        patch.setattr(pulumi.log, "error", lambda text, *_, **__: self.errors.append(text))
        patch.setattr(backends, "connect", self._jobs)
        patch.setattr(logs, "connect", self._logs)

    def _jobs(self, project: str, region: str, kind: Any, account: str) -> Any:
        self.asked.append((project, region, kind, account))
        return SimpleNamespace(get=self._get, log_ids=lambda name: [f"{name}/1", f"{name}/2"])

    def _logs(self, *place: str) -> Any:
        self.asked.append(place)
        return SimpleNamespace(
            tail=lambda job, count: [SimpleNamespace(text=f"line of {job[-2:]}, of {count}")]
        )

    def _get(self, name: str) -> JobSnapshot:
        error = "out of memory" if self.state == "JOB_STATE_FAILED" else ""
        return JobSnapshot(name, self.state, 1, "d", error)

    def __call__(self, *, preview: bool = False, **sections: Any) -> None:
        (self.root / "tune.yaml").write_text(FILE)
        (self.root / "job.yaml").write_text(self.job)
        asyncio.set_event_loop(asyncio.new_event_loop())
        pulumi.runtime.set_mocks(Recorder(), "training", "prod", preview=preview)

        @pulumi.runtime.test
        def run() -> None:
            program.deploy(from_raw(BASE | sections, self.root))

        run()


def test_a_job_that_succeeds_lets_the_program_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(monkeypatch, tmp_path, "JOB_STATE_SUCCEEDED")
    run(jobs={"train": WAITING})
    assert run.said == ["job train: SUCCEEDED"]
    assert (run.errors, run.ended) == ([], [])
    assert run.asked == [("acme-ml-prod", "us-central1", CUSTOM_JOB, "")]


def test_a_job_that_fails_ends_the_program_with_its_log_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(monkeypatch, tmp_path, "JOB_STATE_FAILED")
    run(jobs={"train": WAITING})
    assert run.said == ["job train: FAILED"]
    assert run.errors == [
        "job 'train' is FAILED (training-train-id): out of memory. Fix the job, or set run: 2 in "
        "the stack file to submit the job again.\nThe last 2 lines of the job's log:\n"
        "  line of /1, of 20\n  line of /2, of 20"
    ]
    assert run.ended == [MESSAGE_SHOWN]
    assert run.asked == [
        ("acme-ml-prod", "us-central1", CUSTOM_JOB, ""),
        ("acme-ml-prod", ""),
    ]
