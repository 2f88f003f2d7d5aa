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
from vertex_training_cli.jobs.waiting import WaitResult

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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--label", "a b"), "Invalid value for --label: 'a b'; write it like team=ml"),
        (("list", "--label", "Team=ml"), "'Team=ml'; write it like team=ml"),
        (("list", "--label", "team=ML"), "'team=ML'; write it like team=ml"),
        (("logs", "a", "--replica", "zone-b"),
         "Invalid value for --replica: 'zone-b'; write it like workerpool0-0"),
        (("wait", "a", "--deadline", "1 hour"),
         "Invalid value for --deadline: '1 hour'; write it like 30m"),
    ],
)  # fmt: skip
def test_an_option_of_another_form_is_told_with_its_form(
    jobs: Jobs, words: tuple[str, ...], said: str
) -> None:
    done = vt(*words)
    assert (done.exit_code, said in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "listed", "shown"),
    [
        ((), {"all_stacks": False, "states": [], "labels": {}}, (20, False, None)),
        (
            ("--all", "--state", "failed", "--state", "JOB_STATE_RUNNING", "--label", "team=ml",
             "--label", "run=", "--limit", "3", "--metrics", "--format", "json"),
            {"all_stacks": True, "states": ["FAILED", "RUNNING"],
             "labels": {"team": "ml", "run": ""}},
            (3, True, "acme-ml"),
        ),
    ],
)  # fmt: skip
def test_options_of_a_list_reach_it(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], listed: dict[str, Any], shown: tuple[Any, ...],
) -> None:  # fmt: skip
    calls: list[Any] = []

    def table_of(found: Any, ref: Any, limit: int, *, as_json: bool, log: Any, reader: Any) -> None:
        calls.append((found, ref, log, limit, as_json, reader))

    monkeypatch.setattr(jobs, "list", lambda **given: [given], raising=False)
    monkeypatch.setattr(command, "MetricsReader", lambda project, log: project)
    monkeypatch.setattr(command.show, "table_of", table_of)
    assert vt("list", *words).exit_code == 0
    assert calls == [([listed], REF, command.print_status, *shown)]


@pytest.mark.parametrize(
    ("words", "as_json", "reader"), [((), False, "acme-ml"), (("--format", "json"), True, None)]
)
def test_one_job_is_shown_with_its_metrics_or_as_its_message(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], as_json: bool, reader: str | None,
) -> None:  # fmt: skip
    calls: list[Any] = []
    monkeypatch.setattr(command, "MetricsReader", lambda project, log: project)
    monkeypatch.setattr(command.show, "one", lambda *given, **more: calls.append((*given, more)))
    assert vt("show", "a", *words).exit_code == 0
    assert calls == [(jobs.jobs["a"], REF, {"as_json": as_json, "reader": reader})]


def test_jobs_are_compared_in_the_order_of_the_line_and_as_a_page(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(command, "MetricsReader", lambda project, log: project)
    monkeypatch.setattr(command.compare, "compared", lambda *given: given)
    monkeypatch.setattr(
        command.show, "compared", lambda *given, **more: calls.append((given, more))
    )
    monkeypatch.setattr("vertex_training_cli.jobs.page.render", lambda found: f"{len(found)}\ud800")
    each = [(jobs.jobs[name], "us-central1", "acme-ml") for name in ("b", "a")]
    done = vt("compare", "b", "a", "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    file = tmp_path / "runs.html"
    done = vt("compare", "b", "a", "--html", str(file))
    assert (done.exit_code, done.stderr, file.read_text()) == (0, f"vt: wrote {file}\n", "2?")
    assert calls == [((each,), {"as_json": True}), ((each,), {"as_json": False})]
    done = vt("compare", "b", "--html", str(tmp_path))
    assert (done.exit_code, done.stderr) == (
        1, f"vt jobs compare: {tmp_path} cannot be written: Is a directory.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "goal", "seconds"),
    [((), "succeeded", 3600), (("--for", "running", "--deadline", "90s"), "running", 90)],
)
@pytest.mark.parametrize(
    ("messages", "failed", "code"), [((), False, 0), (("a", "b"), False, 124), (("a",), True, 1)]
)
def test_a_wait_ends_by_how_the_jobs_did(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], goal: str, seconds: int,
    messages: tuple[str, ...], failed: bool, code: int,
) -> None:  # fmt: skip
    calls: list[Any] = []
    result = WaitResult(messages, failed)
    monkeypatch.setattr(command.waiting, "wait_for", lambda *given: calls.append(given) or result)
    done = vt("wait", "a", "b", *words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr == "".join(f"vt: {text}\n" for text in messages)
    assert calls == [([jobs.jobs["a"], jobs.jobs["b"]], jobs, goal, seconds)]


def test_a_stacks_jobs_are_read_by_clients_of_its_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(command.stacks, "find", lambda stack: calls.append(stack) or REF)
    monkeypatch.setattr(StackRef, "connect_clients", lambda ref: calls.append(ref))
    monkeypatch.setattr(command, "Jobs", lambda ref: calls.append(("jobs", ref)) or "jobs")
    assert command._jobs_of("dev") == "jobs"
    assert calls == ["dev", REF, ("jobs", REF)]


def test_a_log_is_followed_or_cut(jobs: Jobs) -> None:
    done = vt("logs", "a", "--follow", "--tail", "3")
    assert done.exit_code == 2
    assert "Invalid value for --tail: choose one of --follow and --tail" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {"replica": None, "follow": False, "tail": None, "as_json": False, "trial": None}),
        (
            ("-f", "--trial", "3", "--format", "json"),
            {"replica": None, "follow": True, "tail": None, "as_json": True, "trial": "3"},
        ),
        (
            ("--tail", "2", "--replica", "workerpool12-0"),
            {"replica": "workerpool12-0", "follow": False, "tail": 2, "as_json": False,
             "trial": None},
        ),
    ],
)  # fmt: skip
def test_options_of_a_log_reach_it(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: dict[str, Any]
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(command.log, "show", lambda *each, **more: given.append((*each, more)))
    assert vt("logs", "a", *words).exit_code == 0
    assert given == [(jobs, jobs.jobs["a"], {**expected, "log": command.print_status})]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ("ls", "gs://out/a", "dev")),
        (("here",), ("pull", "gs://out/a", Path("here"), "dev", False)),
        (("here", "--replace"), ("pull", "gs://out/a", Path("here"), "dev", True)),
    ],
)
def test_artifacts_are_listed_or_fetched_from_the_output_directory(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: Any
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(command.data, "ls", lambda *given: done.append(("ls", *given)))
    monkeypatch.setattr(
        command.data, "pull", lambda *given, replace: done.append(("pull", *given, replace))
    )
    assert vt("artifacts", "a", *words).exit_code == 0
    assert done == [expected]
    refused = vt("artifacts", "b", *words)
    assert (refused.exit_code, refused.stderr) == (
        1,
        "vt jobs artifacts: job b has no output directory. "
        "Hint: baseOutputDirectory in its file gives it one\n",
    )
    assert len(done) == 1


OVER = "vt: job over (3) has ended: FAILED\n"
ASKED = "vt: job a (1): asked to cancel\nvt: job b (2): asked to cancel\n"


def test_jobs_that_go_on_are_cancelled_and_ended_ones_are_told(jobs: Jobs) -> None:
    done = vt("cancel", "a", "over", "b", "--yes")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", OVER + ASKED)
    assert jobs.cancelled == ["a", "b"]
    done = vt("cancel", "over")  # nobody is asked about nothing
    assert (done.exit_code, done.stderr) == (0, OVER)


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
