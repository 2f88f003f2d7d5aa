"""``vt jobs advance``: one line for each thing, one failing step keeps no other from its work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tests.unit.infra.schedules.fakes import MONDAY, SCHEDULE, SlotProcess, SlotWorld, ports_of
from tests.unit.infra.schedules.test_declared import PROPS
from vertex_training.catalog.resource_types import SCHEDULE as TYPE
from vertex_training.errors import OperatorError
from vertex_training_cli.jobs import advance as steps
from vertex_training_cli.jobs.advance import Action, Tick

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def deployment(*jobs):
    rows = [
        {
            "type": TYPE,
            "outputs": {
                **PROPS,
                "submission": {**PROPS["submission"], "job": job},
                "since": SCHEDULE.since,
            },
        }
        for job in jobs
    ]
    return {"resources": rows}


def tick(deployment, **given):
    return Tick(None, deployment, now=NOW, **given)


@pytest.fixture
def world(monkeypatch):
    found = SlotWorld()
    found.time = MONDAY.timestamp() + 60

    def connect(schedule):
        if schedule.job == "broken":
            raise OperatorError("the control bucket is gone")
        return ports_of(SlotProcess(found))

    monkeypatch.setattr(steps, "connect", connect)
    return found


def test_one_schedule_that_fails_keeps_no_other_from_its_slot(world):
    found = list(steps.submit_due(tick(deployment("broken", "titanic"))))
    assert found == [
        Action("schedule", "broken", "failed", "the control bucket is gone", failed=True),
        Action("schedule", "titanic", "submitted", "submitted", "job-1", "20261130t050000z"),
    ]
    assert found[1].line == "schedule titanic 20261130t050000z: submitted (job-1)"


def test_a_step_that_raises_is_a_line_and_the_next_one_goes_on():
    def broken_step(_tick):
        raise OperatorError("no answer")
        yield

    def other_step(_tick):
        yield Action("other", "job", "did", "because")

    found = list(steps.actions(tick({}), (broken_step, other_step)))
    assert [each.line for each in found] == ["broken step : no answer", "other job: because"]
    assert found[0].failed


def job(state, *, created, started=None, timeout=None):
    spec = SimpleNamespace(scheduling=SimpleNamespace(timeout=timeout))
    return SimpleNamespace(
        state=SimpleNamespace(name=f"JOB_STATE_{state}"),
        create_time=created, start_time=started, job_spec=spec,
    )  # fmt: skip


HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
STALE = 3 * HOUR + 7 * MINUTE


@pytest.mark.parametrize("tuning", [False, True])
@pytest.mark.parametrize(
    ("state", "waited", "ran", "timeout", "said"),
    [
        ("QUEUED", 2 * HOUR, None, None, ""),
        ("QUEUED", STALE, None, None, "QUEUED for 3h 7m"),
        ("PENDING", 2 * HOUR + MINUTE, None, None, "PENDING for 2h 1m"),
        ("PENDING", None, None, None, ""),
        ("RUNNING", STALE, HOUR + 30 * MINUTE, HOUR, ""),
        (
            "RUNNING",
            STALE,
            HOUR + 31 * MINUTE,
            HOUR,
            "RUNNING for 1h 31m, longer than the job's timeout of 1h 0m",
        ),
        # Vertex AI gives a job seven days where it names none
        ("RUNNING", None, 168 * HOUR + 30 * MINUTE, None, ""),
        (
            "RUNNING",
            None,
            169 * HOUR,
            None,
            "RUNNING for 169h 0m, longer than the job's timeout of 168h 0m",
        ),
    ],
)
def test_jobs_that_are_late_are_named(monkeypatch, state, waited, ran, timeout, said, tuning):
    late = job(
        state,
        created=waited and NOW - waited,
        started=ran and NOW - ran,
        timeout=timeout,
    )
    late.name = "projects/1/locations/r/customJobs/7"
    late.trial_job_spec = late.job_spec
    monkeypatch.setattr(steps.view, "is_tuning", lambda _job: tuning)
    monkeypatch.setattr(steps.view, "title", lambda _job: "train")
    given = tick({})
    given.__dict__["live"] = [late]
    told = "" if tuning and ran else said  # the timeout of a tuning job is that of a trial
    assert list(steps.report_late(given)) == (
        [Action("late", "train", "late", told, late.name)] if told else []
    )
