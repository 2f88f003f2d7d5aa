"""Which lines call for a notification, to whom, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.logging_v2 import types

from localgcp.alerting import spool
from localgcp.alerting.evaluation import Alerting
from localgcp.clients.log_filters import LogFilter
from localgcp.home import Home
from localgcp.inventory.store import ALERT_POLICY, CHANNEL, Store
from localgcp.vertex.records import JobRecord, JobState
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

MAIL = f"projects/{PROJECT}/notificationChannels/1"
ALERT = f"projects/{PROJECT}/alertPolicies/7"
NOW = datetime.now(UTC).replace(microsecond=0)


class Lines:
    """Jobs that ended, their lines, and the alerts about them."""

    def __init__(self, root: Path) -> None:
        self.home, self.store = Home(root, root), Store(root / "cloud.sqlite")
        self.jobs: list[JobRecord] = []
        self.lines: dict[str, list[tuple[datetime, str]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.trials: set[str] = set()
        mail = {"type": "email", "labels": {"email_address": "ml@example.com"}}
        self.store.put(CHANNEL, MAIL, PROJECT, mail, {})

    def ended(self, job_id: str, *texts: str, ago: float = 60, **changes: Any) -> None:
        end = NOW - timedelta(seconds=ago)
        row = replace(job_row(job_id, {}, state=JobState.FAILED), end_time=end.isoformat())
        self.jobs.append(replace(row, **changes))
        self.lines[job_id] = [(end, text) for text in texts]

    def alert(self, name: str = ALERT, *, ago: float = 3600, **changes: Any) -> None:
        match = {"filter": 'textPayload="x"', "labelExtractors": {
            "job_id": "EXTRACT(resource.labels.job_id)"}}  # fmt: skip
        inputs = {
            "displayName": "A job failed",
            "conditions": [{"conditionMatchedLog": match}],
            "notificationChannels": [MAIL],
            "documentation": {"content": "see ${log.extracted_label.job_id} ${resource.label.a} "
                                         "${resource.labels.task_name} ${other}"},
            "alertStrategy": {"notificationRateLimit": {"period": "300s"}},
            **changes,
        }  # fmt: skip
        created = (NOW - timedelta(seconds=ago)).isoformat()
        outputs = {"creationRecords": [{"mutateTime": created}]}
        self.store.put(ALERT_POLICY, name, PROJECT, inputs, outputs)

    def entries(self, project: str, log_filter: LogFilter, job_id: str) -> Iterator[types.LogEntry]:
        self.asked.append((project, job_id))
        for number, (at, text) in enumerate(self.lines[job_id]):
            if log_filter.test({"textPayload": text}.__getitem__):
                labels = {"job_id": job_id, "task_name": "service"}
                yield types.LogEntry(
                    resource={"type": "ml_job", "labels": labels}, timestamp=at,
                    insert_id=f"{job_id}-{number}", text_payload=text,
                )  # fmt: skip

    def looker(self) -> Alerting:
        return Alerting(
            self.home, self.store, lambda: self.jobs, self.trials.__contains__, self.entries
        )

    def look(self) -> list[tuple[str, str]]:
        """Channel and job of what is told after another server has looked."""
        self.looker().look()
        found = spool.read(self.home.notifications)
        return [(each.channel, each.labels["job_id"]) for each in found]


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path)


def test_an_alert_tells_of_what_ends_from_its_first_moment_on(lines: Lines) -> None:
    lines.alert(ago=60)
    lines.ended("1", "x", ago=60)
    lines.ended("2", "x", ago=61)
    assert [job for _, job in lines.look()] == ["1"]


def test_neither_trials_nor_other_projects_nor_what_was_before_is_judged(lines: Lines) -> None:
    lines.alert(ago=100)
    lines.ended("1", "x")
    lines.ended("2", "x", project="local-other")
    lines.ended("3", "x", ago=101)
    lines.ended("4", "x")
    lines.trials = {"1"}
    lines.lines["4"].insert(0, (NOW - timedelta(seconds=101), "x"))
    assert lines.look() == [("email ml@example.com", "4")]
    [found] = spool.read(lines.home.notifications)
    assert found.time == NOW - timedelta(seconds=60)
    assert lines.asked == [(PROJECT, "4")]


def test_a_bad_look_ends_none_that_follow(
    lines: Lines, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looker = lines.looker()

    def fails() -> None:
        raise ValueError("bad")

    monkeypatch.setattr(looker, "look", fails)
    looker.start()
    looker.stop()
    assert "ValueError: bad" in capsys.readouterr().err


def test_a_home_that_was_removed_is_not_made_anew(
    lines: Lines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looker = lines.looker()
    object.__setattr__(lines.home, "root", tmp_path / "gone")
    monkeypatch.setattr(looker, "look", lambda: pytest.fail("it looked"))
    looker.start()
    looker.stop()
