"""What a wait for jobs is told of each of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob
from rich.console import Console

from vertex_training.errors import OperatorError, WaitDeadlineError
from vertex_training_cli.jobs import waiting
from vertex_training_cli.jobs.service import kind_of
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


def test_a_wait_reads_the_job_its_log_its_ladder_and_its_idle_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, told = list[Any](), list[Any]()
    fit = job("fit", "1")
    ref: Any = SimpleNamespace(project="acme", region="us-central1")
    service: Any = SimpleNamespace(ref=ref, get=lambda name: asked.append(name) or fit)

    def connect(*place: Any) -> Any:
        asked.append(place)
        return SimpleNamespace(get="get", log_ids=lambda name: [f"{name}-1", f"{name}-2"])

    def entries(id_: str, count: int) -> list[Any]:
        return [SimpleNamespace(text=f"{id_} {n}") for n in range(count)]

    def logs(project: str) -> Any:
        asked.append(project)
        return SimpleNamespace(tail=entries)

    async def wait_for_job(_given: Any, _name: str, ports: Any) -> None:
        assert ports.get_job == "get"
        ports.report("a line")
        told.extend(
            (ports.connect_ladder(), ports.connect_idle_stop(), ports.read_log_tail("fit", 2))
        )

    monkeypatch.setattr(waiting.backends, "connect", connect)
    monkeypatch.setattr(waiting.logs, "connect", logs)
    monkeypatch.setattr(waiting.ladders, "ladder_of", lambda *given: ("ladder", *given))
    monkeypatch.setattr(waiting.ladders, "idle_stop_of", lambda *given: ("idle stop", *given))
    monkeypatch.setattr(waiting, "wait_for_job", wait_for_job)
    monkeypatch.setattr(waiting.live, "curve_of", curve)
    waiting.wait_for([fit], service, "running", 60)
    assert told == [
        ("ladder", fit, ref), ("idle stop", fit, ref), ["fit-1 0", "fit-1 1", "fit-2 0", "fit-2 1"],
    ]  # fmt: skip
    place = ("acme", "us-central1", kind_of(fit))
    assert asked == [place, "acme", "fit", place]


CONSOLE = Console(width=80, file=io.StringIO(), color_system=None)


@contextmanager
def curve(_jobs: Any, _chosen: Any, text: str) -> Iterator[Console | None]:
    assert text == "waiting; Ctrl-C ends the waiting, not the job"
    yield None


def test_lines_of_a_wait_are_plain_or_above_the_line_that_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none: Any = None
    token = "hf_" + "a" * 34
    monkeypatch.setattr(waiting.live, "curve_of", curve)
    with waiting._progress(none, []) as log:
        log("[bold]a[/bold]")
    assert capsys.readouterr() == ("", "vt: [bold]a[/bold]\n")

    @contextmanager
    def terminal(*_: Any) -> Iterator[Console]:
        yield CONSOLE

    monkeypatch.setattr(waiting.live, "curve_of", terminal)
    with waiting._progress(none, []) as log:
        log(f"[bold]a[/bold] {token}")
    written = CONSOLE.file.getvalue()  # type: ignore[attr-defined]
    assert written.startswith("[bold]a[/bold] ")
    assert token not in written
    assert capsys.readouterr() == ("", "")
