"""The job that a script becomes, what goes with it, and when a stack takes a run."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from typer.testing import CliRunner

from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.run import command, script, submission

JOB = "projects/1/locations/us-central1/customJobs/7"


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Prepares a run of a script; what is sent, and the folder that is packaged."""

    def prepare(file: Path, name: str = "") -> tuple[Any, Path]:
        ref = StackRef(tmp_path / "home", "vt-run", "local", "local-run", "us-central1")
        names = SimpleNamespace(bucket=lambda key: f"local-run-{key}-local")
        stack: Any = SimpleNamespace(
            settings=SimpleNamespace(names=names), submission=lambda job, run: (job, run)
        )
        monkeypatch.setattr(script, "Jobs", lambda _: SimpleNamespace(list=list))
        monkeypatch.setattr(submission, "next_run", lambda _jobs, _job, stack: 7 if stack else 0)
        sent: list[Any] = []
        monkeypatch.setattr(submission, "of_document", lambda *given: sent.append(given))
        script.prepare(file, ["--a"], ref, stack, name)
        [(content, place, _, uploads)] = sent
        [folder] = (tmp_path / "home/jobs").glob("*/script")
        return (content, place, uploads), folder

    return prepare


def test_a_run_under_another_name_leaves_nothing_of_the_last_one(prepared, tmp_path: Path) -> None:
    (tmp_path / "home/jobs/own/script").mkdir(parents=True)
    (tmp_path / "home/jobs/own/script/old.py").write_text("")
    (tmp_path / "fit.py").write_text("")
    (_, place, _), folder = prepared(tmp_path / "fit.py", "own")
    assert place == ("run_own", 7)
    assert sorted(each.name for each in folder.iterdir()) == [
        "__init__.py", "__main__.py", "fit.py",
    ]  # fmt: skip


def test_the_stack_of_scripts_is_brought_up_and_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[Any] = []

    def run(words: list[str], **options: Any) -> Any:
        ran.append((words, options["cwd"], options["stdin"]))
        out = "".join(f"line {number}\n" for number in range(21))
        return SimpleNamespace(returncode=len(ran) - 1, stdout=out, stderr="last\n")

    monkeypatch.setattr(script.subprocess, "run", run)
    script._bring_up(Path("/srv/run"))
    words = ["-m", "vertex_training_cli.cli", "local", "up", "--no-wait"]
    assert ran == [([sys.executable, *words], Path("/srv/run"), subprocess.DEVNULL)]
    with pytest.raises(CommandError) as failed:
        script._bring_up(Path("/srv/run"))
    assert str(failed.value).splitlines() == [
        "the stack of scripts cannot be brought up:",
        *(f"line {number}" for number in range(2, 21)),
        "last",
    ]


def loaded(*, protects: bool = False) -> Any:
    names = SimpleNamespace(bucket=lambda key: f"acme-ml-{key}-dev")
    return SimpleNamespace(
        settings=SimpleNamespace(protects=protects, names=names, project_number="7")
    )


@pytest.mark.parametrize(("project", "up"), [("acme-ml", "vt up"), ("local-x", "vt local up")])
def test_a_stack_takes_runs_if_it_is_up_and_not_protected(
    monkeypatch: pytest.MonkeyPatch, project: str, up: str
) -> None:
    ref = StackRef(Path(), "p", "dev", project, "us-central1")
    there = {(project, "acme-ml-control-dev", "7")}
    monkeypatch.setattr(submission, "has_bucket", lambda *given: given in there)
    command._ensure_usable(ref, loaded())
    with pytest.raises(CommandError) as refused:
        command._ensure_usable(ref, loaded(protects=True))
    assert str(refused.value) == (
        "stack dev is protected: what runs in it is reviewed. Hint: add the job to the stack's "
        "file, or run it in another stack"
    )
    there.clear()
    with pytest.raises(CommandError) as refused:
        command._ensure_usable(ref, loaded())
    assert str(refused.value) == (
        "stack dev is not up: there is no bucket acme-ml-control-dev. Hint: "
        f"`{up} --stack dev`, once"
    )


def run_of(job: str) -> Any:
    return SimpleNamespace(
        costs_at_most="$1", request=SimpleNamespace(submission=SimpleNamespace(job=job))
    )


@pytest.mark.parametrize(("terminal", "yes"), [(False, True), (True, False), (True, True)])
def test_a_cost_on_google_is_confirmed_by_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, yes: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(
        command.typer, "confirm", lambda text, err: asked.append((text, err)) or yes
    )
    if terminal and yes:
        command._confirm(run_of("run_a"))
    else:
        with pytest.raises(typer.Exit) as ended:
            command._confirm(run_of("run_a"))
        assert ended.value.exit_code == 2
    told = "run_a costs at most $1"
    assert asked == [(f"{told}. Submit it?", True)] * terminal
    alone = f"vt: {told}; nobody can be asked here: add --yes. Nothing was submitted.\n"
    assert capsys.readouterr().err == ("" if terminal else alone)


@pytest.mark.parametrize(("local", "words", "asked"), [(True, (), 0), (False, (), 1),
                                                       (False, ("--yes",), 0)])  # fmt: skip
def test_a_job_of_a_stack_is_submitted_by_clients_of_its_cloud(
    monkeypatch: pytest.MonkeyPatch, local: bool, words: tuple[str, ...], asked: int
) -> None:
    calls: list[str] = []
    ref = SimpleNamespace(
        root=Path("/srv"), stack="dev", is_local=local,
        connect_clients=lambda: calls.append("connect"),
    )  # fmt: skip
    prepared = SimpleNamespace(
        request=SimpleNamespace(submission=SimpleNamespace(job="train-2")), costs_at_most="$1"
    )

    def prepare(stack: Any, jobs: Any, *given: Any) -> Any:
        calls.append(f"prepare {stack.stack} {jobs.ref.stack} {given}")
        return prepared

    def submit(*given: Any) -> str:
        calls.append("submit")
        assert given[0] is prepared
        return JOB

    monkeypatch.setattr(command.stacks, "find", lambda stack: calls.append(f"find {stack}") or ref)
    monkeypatch.setattr(command, "Jobs", lambda ref: SimpleNamespace(ref=ref))
    monkeypatch.setattr(
        command, "load_stack",
        lambda _root, stack: SimpleNamespace(stack=stack, settings=None),
    )  # fmt: skip
    monkeypatch.setattr(command, "_ensure_usable", lambda *_: calls.append("usable"))
    monkeypatch.setattr(command, "tell", lambda *_: calls.append("tell"))
    monkeypatch.setattr(command, "_confirm", lambda _: calls.append("confirm"))
    monkeypatch.setattr(command.submission, "prepare", prepare)
    monkeypatch.setattr(command.submission, "submit", submit)
    line = ["run", "train", "--stack", "dev", "--name", "two", "--detach", *words, "--", "--lr=1"]
    done = CliRunner().invoke(app, line)
    assert calls == [
        "find dev", "connect", "usable", "prepare dev dev ('train', ['--lr=1'], 'two')", "tell",
        *["confirm"] * asked, "submit",
    ]  # fmt: skip
    number = JOB.rpartition("/")[2]
    assert (done.exit_code, done.stdout) == (0, f"{number}\n")
    assert done.stderr == f"vt: submitted train-2: {number}\n"


class Jobs:
    """A job in these states, one a look."""

    def __init__(self, *states: str, local: bool = True) -> None:
        self.states, self.cancelled = list(states), list[Any]()
        self.ref = SimpleNamespace(is_local=local, stack="local")

    def get(self, _: str) -> Any:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return CustomJob(
            name=JOB, labels={"vt-job": "run_a", "vt-request-id": "x"},
            state=JobState[f"JOB_STATE_{state}"],
            error={"message": "exited with a non-zero status of 3"},
        )  # fmt: skip

    def cancel(self, job: Any) -> None:
        self.cancelled.append(job.name)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses, which turn the clock."""
    pauses: list[float] = []
    monkeypatch.setattr(command.time, "sleep", pauses.append)
    monkeypatch.setattr(command.time, "monotonic", lambda: sum(pauses))
    return pauses


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Follows jobs whose logs end so; the exit code."""

    def follow(jobs: Any, shown: Callable[..., Any] = lambda *_, **__: None) -> int:
        monkeypatch.setattr(command.view, "is_tuning", lambda _: False)
        monkeypatch.setattr(command.log, "show", shown)
        return command._follow(jobs, JOB)

    return follow


def test_a_job_that_is_followed_gives_its_exit_code(
    slept: list[float], followed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert followed(Jobs("RUNNING", "FAILED")) == 3
    assert capsys.readouterr().err == "vt: run_a: FAILED exited with a non-zero status of 3\n"
    assert followed(Jobs("SUCCEEDED")) == 0


def test_an_interruption_cancels_the_job(
    slept: list[float], followed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    jobs = Jobs("RUNNING", "RUNNING", "CANCELLING", "CANCELLED")
    assert followed(jobs, interrupt) == 130
    assert jobs.cancelled == [JOB]
    assert capsys.readouterr().err.splitlines() == [
        "vt: cancelling 7; Ctrl-C once more leaves it (`vt jobs cancel 7 --stack local`)",
        "vt: run_a: CANCELLED",
    ]


@pytest.mark.parametrize("interrupts", [0, 1, 2])
def test_an_interruption_of_a_submission_waits_for_its_answer_and_then_cancels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupts: int
) -> None:
    answer, left = threading.Event(), [KeyboardInterrupt] * interrupts

    class Waited(Future[str]):
        def result(self, timeout: float | None = None) -> str:
            if left:
                raise left.pop()
            answer.set()
            return super().result(timeout)

    monkeypatch.setattr(command, "Future", Waited)
    monkeypatch.setattr(command.submission, "submit", lambda *_: answer.wait(60) and JOB)
    prepared: Any = SimpleNamespace(request=SimpleNamespace(submission=SimpleNamespace(job="a")))
    stack: Any = None
    if interrupts == 2:
        with pytest.raises(KeyboardInterrupt):
            command._submit(prepared, stack)
        answer.set()
    else:
        assert command._submit(prepared, stack) == (JOB, interrupts == 1)
    told = "vt: a is being submitted, and cancelled after that; Ctrl-C once more leaves it\n"
    assert capsys.readouterr().err == (told if interrupts else "")


def test_what_a_submission_is_refused_for_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> str:
        raise CommandError("no")

    monkeypatch.setattr(command.submission, "submit", refuse)
    nothing: Any = None
    with pytest.raises(CommandError, match="no"):
        command._submit(nothing, nothing)
