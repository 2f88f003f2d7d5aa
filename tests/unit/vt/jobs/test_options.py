"""What options of ``vt jobs`` are refused, and what a person is asked before jobs are cancelled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from typer.testing import CliRunner, Result

from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import command, view

REF = StackRef(Path("/srv"), "demo", "dev", "acme-ml", "us-central1")


class Jobs:
    """A stack's jobs; which were cancelled."""

    ref = REF

    def __init__(self, **jobs: CustomJob) -> None:
        self.jobs, self.cancelled = jobs, list[str]()

    def find(self, wanted: str) -> CustomJob:
        return self.jobs[wanted]

    def whole(self, job: CustomJob) -> CustomJob:
        return job

    def cancel(self, job: CustomJob) -> None:
        self.cancelled.append(view.title(job))


def job(number: int, name: str, state: str, output: str = "") -> CustomJob:
    return CustomJob(
        name=f"projects/1/locations/r/customJobs/{number}", state=JobState[f"JOB_STATE_{state}"],
        labels={"vt-job": name, "vt-request-id": "x"},
        job_spec={"base_output_directory": {"output_uri_prefix": output}},
    )  # fmt: skip


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    found = Jobs(
        a=job(1, "a", "RUNNING", "gs://out/a"), b=job(2, "b", "PENDING"),
        over=job(3, "over", "FAILED"),
    )  # fmt: skip
    monkeypatch.setattr(command, "_jobs_of", lambda stack: found if stack == "dev" else None)
    return found


def vt(*words: str) -> Result:
    return CliRunner().invoke(app, ["jobs", *words, "--stack", "dev"])


def test_a_log_is_followed_or_cut(jobs: Jobs) -> None:
    done = vt("logs", "a", "--follow", "--tail", "3")
    assert done.exit_code == 2
    assert "Invalid value for --tail: choose one of --follow and --tail" in done.stderr


OVER = "vt: job over (3) has ended: FAILED\n"


def test_without_a_terminal_nothing_is_cancelled_unasked(jobs: Jobs) -> None:
    done = vt("cancel", "a", "over")
    told = "vt: nobody can be asked here: add --yes. Nothing was cancelled.\n"
    assert (done.exit_code, done.stderr, jobs.cancelled) == (2, OVER + told, [])


@pytest.mark.parametrize(
    ("answer", "ended", "told"),
    [
        (True, None, ""),
        (False, typer.Exit, "vt: nothing was cancelled\n"),
        (typer.Abort(), KeyboardInterrupt, ""),
    ],
)
def test_a_person_is_asked_by_the_names_of_the_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    answer: Any, ended: type[BaseException] | None, told: str,
) -> None:  # fmt: skip
    asked: list[Any] = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append((text, err))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(command.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(command.typer, "confirm", confirm)
    if ended is None:
        command._confirm(["a (1)", "b (2)"])
    else:
        with pytest.raises(ended) as stopped:
            command._confirm(["a (1)", "b (2)"])
        if isinstance(stopped.value, typer.Exit):
            assert stopped.value.exit_code == 1
    assert asked == [("Cancel a (1), b (2)?", True)]
    assert capsys.readouterr().err == told
