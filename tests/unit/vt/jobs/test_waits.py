"""What a wait for jobs is told of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.errors import OperatorError, WaitDeadlineError
from vertex_training_cli.jobs import waiting
from vertex_training_cli.jobs.waiting import WaitResult


def job(name: str, run: str) -> CustomJob:
    labels = {"vt-request-id": "x", "vt-job": name, "vt-run": run}
    return CustomJob(name=name, display_name=name, labels=labels)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], WaitResult]]:
    """Waits for jobs, which end with an error where one is given by name."""

    def wait(*jobs: CustomJob, **errors: OperatorError) -> tuple[list[Any], WaitResult]:
        told = list[Any]()

        async def wait_for_job(given: Any, name: str, ports: Any) -> None:
            told.append((given.job, given.run, given.goal, given.deadline))
            if name in errors:
                raise errors[name]

        @contextmanager
        def progress(*_: Any) -> Iterator[Callable[[str], None]]:
            yield told.append

        connected = SimpleNamespace(get=None)
        monkeypatch.setattr(waiting.backends, "connect", lambda *_: connected)
        monkeypatch.setattr(waiting, "wait_for_job", wait_for_job)
        monkeypatch.setattr(waiting, "_progress", progress)
        ref: Any = SimpleNamespace(project="acme", region="us-central1")
        service: Any = SimpleNamespace(ref=ref)
        return told, waiting.wait_for(jobs, service, "SUCCEEDED", 60)

    return wait


def test_a_job_is_waited_for_by_its_run_and_that_of_another_may_have_any_text(waited: Any) -> None:
    told, result = waited(job("fit", "3"), job("theirs", "latest"))
    assert told == [
        ("fit", 3, "SUCCEEDED", 60),
        ("theirs", 1, "SUCCEEDED", 60),
    ]
    assert result == WaitResult((), failed=False)


def test_a_deadline_is_no_failure_and_every_other_error_is(waited: Any) -> None:
    jobs = (job("a", "1"), job("b", "1"))
    late, broken = WaitDeadlineError("a waits"), OperatorError("b is gone")
    assert waited(*jobs, a=late)[1] == WaitResult((str(late),), failed=False)
    assert waited(*jobs, a=late, b=broken)[1] == WaitResult((str(late), str(broken)), failed=True)
