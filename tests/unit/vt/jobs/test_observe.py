"""Jobs of a plan as they are: running, ended, slow to read, or not to be read at all."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.plan import Observations, Plan
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import observe
from vertex_training_cli.review import formats
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
    adopted = "adopted, because the request was already submitted"
    assert (adopted in reported(plan, observed)[1]) == (headline.startswith("1 job adopted"))


def test_a_later_rung_an_ended_job_and_a_deleted_record_are_observed(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung, ended, running = (message(each, 3) for each in ("FAILED", "SUCCEEDED", "RUNNING"))
    rung.labels = {"vt-job": "fit", "vt-request-id": "x", "vt-rung": "1"}
    ended.end_time = ended.start_time + timedelta(hours=1)

    class WithRungs(Service):
        def find(self, title: str) -> Any:
            assert title == "fit"
            return running

    use(monkeypatch, WithRungs(rung, ended))
    found = observe.observe_by_name(ref, [NAME.format(number) for number in range(3)])
    states = {name[-1]: (job.state, job.last_line) for name, job in found.jobs.items()}
    assert states == {
        "0": ("RUNNING", "step 100"),
        "1": ("SUCCEEDED", ""),
        "2": ("RECORD_DELETED", ""),
    }
    assert found.jobs[NAME.format(1)].cost == pytest.approx(0.2, rel=0.2)
    monkeypatch.setattr(StackRef, "connect_clients", refuse)
    assert observe.observe_by_name(ref, ["a", "b"]) == Observations({}, "no credentials")


def refuse(_: StackRef) -> None:
    raise OperatorError("no credentials")


def reported(plan: Plan, observed: Any) -> tuple[str, str]:
    report = build(plan, source="", observed=observed)
    return verdict(report), formats.to_markdown(report)


def test_a_slow_service_costs_a_bounded_time_and_is_named(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(*(message("RUNNING", 1) for _ in range(40)))
    service.answers.clear()  # set only afterwards: whoever waits for all answers waits for ever
    use(monkeypatch, service)
    plan = plans.plan(*(step("same", n) for n in range(40)))
    observed = observe.observe_jobs(ref, plan, offline=False, bound=0.3)
    service.answers.set()
    assert observed.not_observed == "no response within the time limit"
    assert (
        "Current states of jobs not checked: `no response within the time limit`"
        in reported(plan, observed)[1]
    )


@pytest.mark.parametrize("error", [OperatorError("no right to read"), CommandError("no cloud", "")])
def test_what_cannot_be_read_is_named_and_the_others_are_shown(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    use(monkeypatch, Service(message("RUNNING", 1), error))
    plan = plans.plan(step("same", 0), step("same", 1))
    observed = observe.observe_jobs(ref, plan, offline=False)
    assert [job.state for job in observed.jobs.values()] == ["RUNNING"]
    assert str(error) in observed.not_observed
