"""Which lines call for a notification, to whom, and how it reads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.logging_v2 import types

from localgcp.alerting import spool
from localgcp.alerting.evaluation import Alerting
from localgcp.alerting.spool import Notification
from localgcp.clients.log_filters import LogFilter
from localgcp.home import Home
from localgcp.inventory.store import ALERT_POLICY, CHANNEL, Store
from localgcp.vertex.records import JobRecord, JobState
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

MAIL = f"projects/{PROJECT}/notificationChannels/1"
CHAT = f"projects/{PROJECT}/notificationChannels/2"
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


def test_a_notification_says_what_where_and_to_whom(
    lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.alert()
    lines.ended("1", "x", "y", "x")
    lines.looker().look()
    [found] = spool.read(lines.home.notifications)
    end = NOW - timedelta(seconds=60)
    to = "email ml@example.com"
    assert found == Notification(end, ALERT, "A job failed", to, {"job_id": "1"})
    [file] = lines.home.notifications.glob("*.eml")
    assert file.name.startswith(f"{end:%Y%m%dT%H%M%S}-")
    head, _, body = file.read_text().partition("\n\n")
    assert body == (
        "see 1 ${resource.label.a} service ${other}\n\n-- \n"
        "stand-in of the local cloud: nothing was sent\n"
    )
    assert "X-Channel: email ml@example.com" in head.splitlines()
    assert capsys.readouterr().out == (
        f"alert (stand-in, nothing is sent): 'A job failed' to {to}\n"
    )


def test_without_an_alert_nothing_is_looked_at(lines: Lines) -> None:
    lines.ended("1", "x")
    assert lines.look() == []
    assert lines.asked == []
    assert not lines.home.notifications.exists()


@pytest.mark.parametrize(
    ("channels", "to"),
    [
        ([MAIL, CHAT], ["email ml@example.com", f"nobody: {CHAT} is not there"]),
        ([], ["nobody: it names no channel"]),
    ],
)
def test_each_channel_gets_its_own(lines: Lines, channels: list[str], to: list[str]) -> None:
    lines.alert(notificationChannels=channels)
    lines.ended("1", "x")
    assert lines.look() == [(each, "1") for each in to]


@pytest.mark.parametrize(
    ("enabled", "off"), [(False, "nobody, it is off: "), (True, ""), (None, "")]
)
def test_a_channel_that_is_off_reaches_nobody(lines: Lines, enabled: bool, off: str) -> None:
    labels = {"a": "b", "c": 1}
    lines.store.put(CHANNEL, CHAT, PROJECT, {"type": "t", "labels": labels, "enabled": enabled}, {})
    lines.alert(notificationChannels=[CHAT])
    lines.ended("1", "x")
    assert lines.look() == [(f"{off}t b 1", "1")]


def test_within_the_pause_the_same_labels_are_told_once(lines: Lines) -> None:
    lines.alert()
    lines.ended("1")
    end = NOW - timedelta(seconds=1000)
    lines.lines["1"] = [(end + timedelta(seconds=s), "x") for s in (0, 299, 300, 599, 600)]
    lines.ended("2", "x")
    assert [job for _, job in lines.look()] == ["1", "1", "1", "2"]
    times = [each.time for each in spool.read(lines.home.notifications)]
    assert times[:3] == [end + timedelta(seconds=s) for s in (0, 300, 600)]


def test_what_an_earlier_server_told_is_counted(lines: Lines) -> None:
    lines.alert()
    lines.ended("1", "x")
    assert len(lines.look()) == 1
    lines.lines["1"] = [(NOW - timedelta(seconds=59), "x")]
    os.utime(lines.home.notifications / ".looked", (0, 0))
    assert len(lines.look()) == 1


def test_one_alert_does_not_silence_another(lines: Lines) -> None:
    other = f"projects/{PROJECT}/alertPolicies/8"
    lines.alert()
    lines.ended("1", "x")
    assert len(lines.look()) == 1
    assert lines.home.notifications.stat().st_mode & 0o777 == 0o700
    lines.alert(other)
    os.utime(lines.home.notifications / ".looked", (0, 0))
    lines.looker().look()
    assert [each.alert for each in spool.read(lines.home.notifications)] == [ALERT, other]


def test_labels_are_told_apart_by_all_of_them_whatever_their_order(lines: Lines) -> None:
    extractors = {"Z": "EXTRACT(resource.labels.job_id)", "a": "EXTRACT(resource.labels.task_name)"}
    match = {"filter": 'textPayload="x"', "labelExtractors": extractors}
    text = {"content": "${log.extracted_label.Z} ${resource.labels.Z}"}
    lines.alert(conditions=[{"conditionMatchedLog": match}], documentation=text)
    lines.ended("1", "x")
    for seconds in (60, 59):
        lines.lines["1"] = [(NOW - timedelta(seconds=seconds), "x")]
        lines.looker().look()
        os.utime(lines.home.notifications / ".looked", (0, 0))
    [found] = spool.read(lines.home.notifications)
    assert found.labels == {"Z": "1", "a": "service"}
    [file] = lines.home.notifications.glob("*.eml")
    assert "\n\n1 ${resource.labels.Z}\n" in file.read_text()


def test_an_alert_tells_of_what_ends_from_its_first_moment_on(lines: Lines) -> None:
    lines.alert(ago=60)
    lines.ended("1", "x", ago=60)
    lines.ended("2", "x", ago=61)
    assert [job for _, job in lines.look()] == ["1"]


def test_a_look_is_at_jobs_that_ended_since_the_last_one(lines: Lines) -> None:
    lines.alert()
    assert lines.look() == []
    marker = lines.home.notifications / ".looked"
    assert abs(marker.stat().st_mtime - time.time()) < 60
    assert marker.stat().st_mode & 0o777 == 0o600
    at = (NOW - timedelta(seconds=100)).timestamp()
    for job_id, ago in (("1", 111), ("2", 110), ("3", 99)):
        lines.ended(job_id, "x", ago=ago)
    os.utime(marker, (at, at))
    assert sorted(job for _, job in lines.look()) == ["2", "3"]


def test_one_look_at_a_job_is_enough(lines: Lines) -> None:
    lines.alert()
    looker = lines.looker()
    looker.look()
    lines.ended("1", "x", ago=-86_400)
    lines.ended("2", "x", end_time=None)
    for _ in range(2):
        looker.look()
    assert lines.asked == [(PROJECT, "1")]


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


def test_the_thread_looks_a_last_time(lines: Lines) -> None:
    lines.alert()
    looker = lines.looker()
    looker.start()
    lines.ended("1", "x", ago=-86_400)
    looker.stop()
    assert [each.labels for each in spool.read(lines.home.notifications)] == [{"job_id": "1"}]


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


def note(**changes: Any) -> Notification:
    return replace(Notification(NOW, "a", "t", "c", {"k": "v"}, "text"), **changes)


def test_notifications_are_kept_as_mail_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "notifications"
    assert spool.read(folder) == []
    spool.write(folder, note(), "one")
    file = folder / "one.eml"
    assert file.read_text().splitlines() == [
        "Subject: [ALERT] t",
        f"Date: {NOW:%a, %d %b %Y %H:%M:%S} +0000",
        "X-Local-Cloud: stand-in of the local cloud: nothing was sent",
        "X-Channel: c",
        "X-Alert: a",
        "X-Label-k: v",
        'Content-Type: text/plain; charset="utf-8"',
        "Content-Transfer-Encoding: 7bit",
        "MIME-Version: 1.0",
        "",
        "text",
        "",
        "-- ",
        "stand-in of the local cloud: nothing was sent",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    spool.write(folder, note(title="new\n  title", channel="c\r\nX: y"), "one")
    assert spool.read(folder) == [note(title="new title", channel="c X: y", text="")]
    assert [path.name for path in folder.iterdir()] == ["one.eml"]


def test_notifications_are_read_oldest_first(tmp_path: Path) -> None:
    later = NOW + timedelta(seconds=1)
    made = [note(time=later), note(alert="b"), note(channel="d"), note()]
    for number, each in enumerate(made):
        spool.write(tmp_path, each, str(number))
    found = [(each.time, each.alert, each.channel) for each in spool.read(tmp_path)]
    assert found == [(NOW, "a", "c"), (NOW, "a", "d"), (NOW, "b", "c"), (later, "a", "c")]
