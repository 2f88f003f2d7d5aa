"""Jobs of a plan as they are: running, ended, slow to read, or not to be read at all."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.plan import JobObservation, Plan
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import observe
from vertex_training_cli.jobs.objects import ObjectListing
from vertex_training_cli.review import markdown
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import build

NAME = "projects/1/locations/us-central1/customJobs/{}"


def step(op: str, number: int, **more: Any) -> plans.Event:
    """A step of a job that exists."""
    old, new = plans.job(f"job-{number}"), plans.job(f"job-{number}", run=2)
    event = plans.step(
        op, plans.JOB, f"training-job-{number}", old=old, new=None if op == "delete" else new,
        outputs={"requestId": f"id-of-job-{number}-{2 if op == 'same' else 1}"}, **more,
    )  # fmt: skip
    event["resourcePreEvent"]["metadata"]["old"]["id"] = NAME.format(number)
    return event


def message(state: str, hours: float | None, machine: str = "n1-standard-4") -> Any:
    """A CustomJob of the official client."""
    from vertex_training.customjob.google.vertex_api import CustomJob

    pool = {"replica_count": 1, "machine_spec": {"machine_type": machine}}
    job = CustomJob(state=f"JOB_STATE_{state}", job_spec={"worker_pool_specs": [pool]})
    if hours is not None:
        job.start_time = datetime.now(UTC) - timedelta(hours=hours)
    return job


class Service:
    """What ``vertex_training_cli.jobs.service.Jobs`` and the logs answer."""

    ref = SimpleNamespace(region="us-central1")

    def __init__(self, *jobs: Any, line: str = "step 100") -> None:
        self.jobs = {NAME.format(number): job for number, job in enumerate(jobs)}
        self.line, self.asked = line, 0
        self.answers = threading.Event()
        self.answers.set()

    def log_id(self, job: Any) -> str:
        return str(id(job))

    def get_if_exists(self, name: str) -> Any:
        self.asked += 1
        self.answers.wait()
        job = self.jobs.get(name)
        if isinstance(job, Exception):
            raise job
        return job

    def tail(self, job_id: str, count: int) -> list[Any]:
        return [SimpleNamespace(text=self.line)]


@pytest.fixture
def ref(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> StackRef:
    monkeypatch.setattr(StackRef, "connect_clients", lambda self: None)
    return StackRef(tmp_path, "p", "dev", "acme-ml-dev", "us-central1")


def use(monkeypatch: pytest.MonkeyPatch, service: Service) -> Service:
    from vertex_training.customjob.google import logs
    from vertex_training_cli.jobs import observe as module

    monkeypatch.setattr(module, "Jobs", lambda ref: service)
    monkeypatch.setattr(logs, "connect", lambda project: service)
    return service


@pytest.mark.parametrize(
    ("answer", "offline", "headline"),
    [
        (True, False, "1 job adopted; nothing destroyed."),
        (False, False, "1 job submitted; at most $0.22; nothing destroyed."),
        (OperatorError("403"), False, "1 job submitted; at most $0.22; nothing destroyed."),
        (True, True, "1 job submitted; at most $0.22; nothing destroyed."),
    ],
)
def test_a_new_job_whose_request_has_one_already_is_adopted_and_costs_nothing_more(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch, answer: Any, offline: bool, headline: str
) -> None:
    asked: list[tuple[str, str]] = []

    class Lists(Service):
        def is_adopted(self, request_id: str, kind: Any) -> bool:
            asked.append((request_id, kind.collection))
            if isinstance(answer, Exception):
                raise answer
            return answer

    use(monkeypatch, Lists())
    plan = plans.plan(plans.create(plans.JOB, "training-a", **plans.job("a")))
    observed = observe.observe_jobs(ref, plan, offline=offline)
    assert reported(plan, observed)[0] == headline
    assert asked == ([] if offline else [("id-of-a-1", "customJobs")])
    adopted = "adopted: it was submitted before, and nothing is sent"
    assert (adopted in reported(plan, observed)[1]) == (headline.startswith("1 job adopted"))


def reported(plan: Plan, observed: Any) -> tuple[str, str]:
    report = build(plan, source="", observed=observed)
    return verdict(report), markdown.render(report)


def test_a_running_job_is_shown_with_its_time_its_cost_and_its_last_line(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Service(message("RUNNING", 3)))
    plan = plans.plan(step("replace", 0))
    headline, page = reported(plan, observe.observe_jobs(ref, plan, offline=False))
    assert "1 running job cancelled after 3h 0m ($0.66 so far)" in headline
    assert "the old one is cancelled (running for 3h 0m, $0.66 so far)" in page
    assert "- `job-0`: running for 3h 0m, $0.66 so far; last line: `step 100`" in page
    assert "when last seen" not in page


@pytest.mark.parametrize(
    ("count", "more", "words"),
    [
        (2, False, "last checkpoint 1h 0m ago"),
        (2, True, "at most 1h 0m ago"),
        (0, False, "$0.66 so far, no checkpoint)"),
    ],
)
def test_what_a_cancellation_throws_away_is_since_the_last_checkpoint(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch, count: int, more: bool, words: str
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=1) if count else None
    listing = ObjectListing(count, more, newest)
    use(monkeypatch, Service(message("RUNNING", 3)))
    monkeypatch.setattr(observe.CheckpointLook, "newest", lambda self, job: listing)
    plan = plans.plan(step("replace", 0))
    _, page = reported(plan, observe.observe_jobs(ref, plan, offline=False))
    assert words in page


def test_of_a_job_that_has_ended_no_checkpoint_is_looked_for(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Service(message("SUCCEEDED", 3), message("QUEUED", None)))
    monkeypatch.setattr(observe.CheckpointLook, "newest", lambda self, job: pytest.fail("asked"))
    plan = plans.plan(step("replace", 0), step("replace", 1))
    observed = observe.observe_jobs(ref, plan, offline=False)
    assert [job.checkpoint for job in observed.jobs.values()] == [None, None]


def test_what_has_ended_meanwhile_is_not_said_to_be_cancelled(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Service(message("SUCCEEDED", 1), None, message("QUEUED", None)))
    plan = plans.plan(*(step("replace", n) for n in range(3)))
    headline, page = reported(plan, observe.observe_jobs(ref, plan, offline=False))
    assert "running job cancelled" not in headline
    assert "the old one succeeded after" in page
    assert "the old one record deleted" in page
    assert "the old one is cancelled (queued)" in page


def test_a_slow_service_costs_a_bounded_time_and_is_named(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(*(message("RUNNING", 1) for _ in range(40)))
    service.answers.clear()  # set only afterwards: whoever waits for all answers waits for ever
    use(monkeypatch, service)
    plan = plans.plan(*(step("same", n) for n in range(40)))
    observed = observe.observe_jobs(ref, plan, offline=False, bound=0.3)
    service.answers.set()
    assert observed.not_observed == "no answer in time"
    assert "Jobs were not looked at: `no answer in time`" in reported(plan, observed)[1]


def test_what_a_change_ends_is_looked_at_before_what_stays(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = ("read", "same", "update", "replace", "delete-replaced", "delete")
    plan = plans.plan(*(step(op, number) for number, op in enumerate(ops)))
    assert [name[-1] for name in observe._names(plan)] == ["5", "4", "3", "2", "1", "0"]


def test_offline_nothing_is_asked_and_the_report_says_so(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = use(monkeypatch, Service())
    plan = plans.plan(step("replace", 0))
    observed = observe.observe_jobs(ref, plan, offline=True)
    assert "not looked at: `the preview was made offline`" in reported(plan, observed)[1]
    assert service.asked == 0
    new = plans.plan(plans.create(plans.JOB, "training-a", **plans.job("a")))
    assert observe.observe_jobs(ref, new, offline=True).not_observed == ""


@pytest.mark.parametrize("error", [OperatorError("no right to read"), CommandError("no cloud", "")])
def test_what_cannot_be_read_is_named_and_the_others_are_shown(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    use(monkeypatch, Service(message("RUNNING", 1), error))
    plan = plans.plan(step("same", 0), step("same", 1))
    observed = observe.observe_jobs(ref, plan, offline=False)
    assert [job.state for job in observed.jobs.values()] == ["RUNNING"]
    assert str(error) in observed.not_observed


def test_no_line_of_a_log_acts_in_the_report(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "`</code>[x](http://evil) <img src=x> @all\n| a" + "y" * 500
    use(monkeypatch, Service(message("RUNNING", 1), line=line))
    plan = plans.plan(step("same", 0))
    observed = observe.observe_jobs(ref, plan, offline=False)
    page = reported(plan, observed)[1]
    [shown] = [text for text in page.splitlines() if text.startswith("- `job-0`")]
    assert "<img" not in shown or "``" in shown
    assert len(shown) < 400


def test_the_digest_does_not_depend_on_what_jobs_do() -> None:
    plan = plans.plan(step("replace", 0))
    seen = observe.Observations({NAME.format(0): JobObservation("RUNNING", 5, 1.0, "x")})
    assert build(plan, source="", observed=seen).digest == build(plan, source="").digest
