"""What is asked of Cloud Monitoring, and how its answers are read."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import pytest
import requests

from vertex_training.customjob.google import utilization
from vertex_training.customjob.protocol.idle import Reading
from vertex_training.errors import OperatorError

NAME = "projects/1/locations/r/customJobs/77"


def series(**changes: Any) -> dict[str, Any]:
    return {
        "metric": {"type": "t", "labels": {"accelerator_id": "0"}},
        "resource": {"labels": {"job_id": "77", "task_name": "workerpool0-0"}},
        "points": [
            {
                "interval": {"endTime": "2026-11-26T10:00:00.5Z"},
                "value": {"doubleValue": 0},
            }
        ],
        **changes,
    }


class Session:
    """Gives these answers, one after the other, at a time that is off by ``skew``."""

    def __init__(self, answers: list[Any], status: int = 200, skew: float = 0) -> None:
        self.answers, self.status, self.skew = answers, status, skew
        self.asked: list[dict[str, str]] = []

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        assert (method, url) == (
            "GET",
            "https://monitoring.googleapis.com/v3/projects/acme-ml/timeSeries",
        )
        assert options["timeout"] == 20
        self.asked.append(options["params"])
        answer = requests.Response()
        answer.status_code, answer.reason = self.status, HTTPStatus(self.status).phrase
        answer.headers["Date"] = formatdate(time.time() + self.skew, usegmt=True)
        answer._content = json.dumps(self.answers.pop(0)).encode()
        return answer


def read(monkeypatch: pytest.MonkeyPatch, session: Session) -> Reading:
    monkeypatch.setattr(utilization, "session", lambda *, local, account: session)
    return utilization.read("acme-ml", NAME, 1800, "")


def test_all_pages_are_read_by_the_metric_of_the_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(
        [{"timeSeries": [series()], "nextPageToken": "n"}, {"timeSeries": [series()]}]
    )
    found = read(monkeypatch, session)
    assert abs(found.now - time.time()) < 5
    first, second = found.series
    assert first == second
    assert (first.replica, first.accelerator) == ("workerpool0-0", "accelerator_id=0")
    assert first.points == [(1795687200.5, 0.0)]
    assert [each.get("pageToken") for each in session.asked] == [None, "n"]
    assert session.asked[0]["filter"] == (
        'metric.type="ml.googleapis.com/training/accelerator/utilization" AND '
        'resource.type="cloudml_job" AND resource.labels.job_id="77"'
    )


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"timeSeries": [series(resource={"labels": {"job_id": "78", "task_name": "x"}})]},
        {"timeSeries": [series(points=[{"value": {"doubleValue": 0}}])]},
        {"timeSeries": [series(), {}]},
        {"timeSeries": [series()], "executionErrors": [{"message": "partial"}]},
        {"timeSeries": [series()], "nextPageToken": "for ever"},
    ],
)
def test_an_answer_of_another_form_or_a_part_of_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    with pytest.raises(OperatorError, match="Cloud Monitoring"):
        read(monkeypatch, Session([answer] * 300))


@pytest.mark.parametrize("skew", [-3600, -90, 90, 3600])
def test_a_wrong_clock_is_reported(monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    with pytest.raises(OperatorError, match="clock is"):
        read(monkeypatch, Session([{}], skew=skew))


def test_a_refusal_names_the_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperatorError, match="it takes monitoring"):
        read(monkeypatch, Session([{}], status=403))


def test_a_missing_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Session):
        def request(self, method: str, url: str, **options: Any) -> requests.Response:
            raise requests.ConnectionError(method, url, options)

    with pytest.raises(OperatorError, match="no answer of Cloud Monitoring: ConnectionError"):
        read(monkeypatch, Gone([]))
