"""Which logs ``vt jobs logs`` reads, and the form of each line that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from vertex_training.customjob.google.logs import LogLine
from vertex_training_cli.jobs import log as job_log

PLACE = "projects/1/locations/us-central1"


class Logs:
    """Logs by job id; what was asked of them."""

    def __init__(self, **lines: list[LogLine]) -> None:
        self.lines_of, self.asked = lines, list[Any]()

    def lines(self, number: str, replica: str | None) -> list[LogLine]:
        self.asked.append(("lines", number, replica))
        return self.lines_of.get(f"n{number}", [])

    def tail(self, number: str, count: int, replica: str | None) -> list[LogLine]:
        self.asked.append(("tail", number, count, replica))
        return self.lines_of.get(f"n{number}", [])[-count:]

    def follow(self, number: str, replica: str | None, *, ended: Any, pause: Any) -> Iterator[Any]:
        self.asked.append(("follow", number, replica, ended()))
        pause()
        yield from self.lines_of.get(f"n{number}", [])


def line(text: str, replica: str = "workerpool0-0") -> LogLine:
    return LogLine("2026-11-21T10:00:00Z", replica, "INFO", text)


POOL = {"replica_count": 1, "machine_spec": {"machine_type": "n1-standard-4"}}


def job(*pools: dict[str, Any]) -> CustomJob:
    return CustomJob(
        name=f"{PLACE}/customJobs/7", display_name="train", state=JobState.JOB_STATE_RUNNING,
        job_spec={"worker_pool_specs": list(pools) or [POOL]},
    )  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Shows a log; the lines, what was said, what was asked, and the pauses."""

    def show(logs: Logs, found: Any, *, local: bool = False, **options: Any) -> Any:
        pauses: list[float] = []
        said: list[str] = []
        monkeypatch.setattr(job_log.logs, "connect", lambda _: logs)
        monkeypatch.setattr(job_log.time, "sleep", pauses.append)
        ended = CustomJob(state=JobState.JOB_STATE_SUCCEEDED)
        jobs: Any = SimpleNamespace(
            ref=SimpleNamespace(project="acme", is_local=local),
            log_id=lambda each: each.name.rpartition("/")[2],
            get_if_exists=lambda name: None if name.endswith("/gone") else ended,
        )
        usual = {"replica": None, "follow": False, "tail": None, "as_json": False}
        job_log.show(jobs, found, log=said.append, **usual | options)
        return capsys.readouterr().out.splitlines(), said, logs.asked, pauses

    return show


def test_a_job_whose_record_is_gone_has_ended(shown) -> None:
    found = job()
    found.name = f"{PLACE}/customJobs/gone"
    assert shown(Logs(), found, follow=True)[2] == [("follow", "gone", None, True)]


def test_only_a_log_that_is_followed_on_a_terminal_has_a_curve_below_it(
    shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves: list[Any] = []

    @contextmanager
    def curve(jobs: Any, chosen: Any) -> Iterator[None]:
        curves.append((jobs.ref.project, chosen))
        yield

    monkeypatch.setattr(job_log.waiting, "curve_of", curve)
    found, logs = job(), Logs(n7=[line("one")])
    monkeypatch.setattr(job_log.sys.stdout, "isatty", lambda: True, raising=False)
    shown(logs, found)
    shown(logs, found, follow=True, as_json=True)
    assert curves == []
    assert shown(Logs(n7=[line("one")]), found, follow=True, replica="workerpool0-0")[:3] == (
        ["one"], [], [("follow", "7", "workerpool0-0", True)],
    )  # fmt: skip
    assert curves == [("acme", [found])]
