"""A container is healthy, gets no requests, and is started again as documented."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import (
    ContainerDownError,
    ExecutorError,
    JobCancelledError,
    NoAnswerError,
)
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.runner.replica import Ending, Outcome
from localgcp.serving import replicas
from localgcp.serving.replicas import Answer, Replica, Timing
from tests.unit.localcloud.conftest import wait_until

QUICK = Timing(health=0.01, tries=3, startup=0.01, restart=0.01)
WELL, ILL = Answer(200, "", b""), Answer(503, "", b"")


class Container:
    """A replica whose process and whose answers are the test's."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ports, self.given = iter(range(8001, 9000)), list[dict[str, Any]]()
        self.answers: list[Answer | Exception] = [ILL]
        self.asked: list[tuple[Any, ...]] = []
        self.refuses: list[Exception] = []
        self.end, self.code = threading.Event(), 3
        self.root = root
        monkeypatch.setattr(replicas.replica, "run", self.run)
        monkeypatch.setattr(Replica, "ask", self.ask)
        self.replica = Replica(
            self.launch, lambda: next(self.ports), health_route="/h", work=root / "work",
            log=JobLog(root / "log"), notes=root / "notes", account="a@b", timing=QUICK,
        )  # fmt: skip

    @contextmanager
    def launch(self, port: int) -> Iterator[Launch]:
        if self.refuses:
            raise self.refuses.pop(0)
        yield Launch(["serve", str(port)], {"A": "b"}, 0o022)

    def run(self, argv: list[str], **given: Any) -> Outcome:
        self.given.append({"argv": argv, **given})
        while not (self.end.wait(0.01) or given["cancelled"].is_set()):
            pass
        self.end.clear()
        return Outcome(Ending.EXITED, self.code)

    def ask(self, verb: str, route: str, *, seconds: float) -> Answer:
        self.asked.append((verb, route, seconds))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def log(self) -> list[str]:
        return [line.partition("] ")[2] for line in (self.root / "log").read_text().splitlines()]


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    made = Container(tmp_path, monkeypatch)
    yield made
    made.replica.stop()


def test_a_container_is_healthy_once_it_answers(container: Container) -> None:
    container.answers = [ContainerDownError("refused"), NoAnswerError("late"), ILL, WELL]
    container.replica.start()
    wait_until(lambda: container.replica.healthy)
    assert container.asked[:4] == [("GET", "/h", 0.01)] * 4
    [given] = container.given
    assert given.pop("terminate") is not None
    assert given == {
        "argv": ["serve", "8001"],
        "env": {"A": "b"},
        "cwd": container.root / "work",
        "log": container.replica.log,
        "notes": container.root / "notes",
        "cancelled": container.replica.stopped,
        "umask": 0o022,
        "account": "a@b",
    }
    assert (container.replica.port, container.replica.failure) == (8001, "")
    container.replica.stop()
    container.replica.stop()
    assert container.replica.healthy is False
    assert container.log() == ["healthy"]


def test_times_are_those_of_the_service() -> None:
    assert Timing() == Timing(health=10.0, tries=3, startup=0.1, restart=2.0, drain=60.0)


class Waits(threading.Event):
    """Set after so many waits; ``done`` is what each of them was, and then happens."""

    def __init__(self, *happens: Callable[[], None] | None) -> None:
        super().__init__()
        self.done, self.happens = list[float | None](), list(happens)

    def wait(self, timeout: float | None = None) -> bool:
        self.done.append(timeout)
        if not self.happens:
            return True
        if act := self.happens.pop(0):
            act()
        return False


def test_a_container_is_looked_at_often_until_it_was_well_at_its_port(
    container: Container,
) -> None:
    made = container.replica
    made._timing, made._runs, made.port = Timing(health=0.5, startup=0.25), True, 8001

    def begin_again() -> None:
        made.port = 8002

    container.answers = [ILL, WELL, ILL, ILL, WELL]
    made.stopped = Waits(None, None, None, begin_again, None)
    made._watch()
    assert made.stopped.done == [0.25, 0.25, 0.5, 0.5, 0.25, 0.5]
    assert container.asked == [("GET", "/h", 0.5)] * 5


def test_after_three_more_failures_it_gets_no_requests_until_it_is_well(
    container: Container,
) -> None:
    container.answers = [WELL, ILL, ILL, ILL, WELL, ILL, ILL, ILL, ILL, ILL, WELL]
    container.replica.start()
    wait_until(lambda: len(container.asked) > 12)
    wait_until(lambda: container.replica.healthy)
    container.replica.stop()
    assert container.log() == ["healthy", "unhealthy: it gets no requests", "healthy"]


def test_a_container_that_ends_is_started_again_at_another_port(container: Container) -> None:
    container.answers = [WELL]
    container.replica.start()
    wait_until(lambda: container.replica.healthy)
    container.end.set()
    wait_until(lambda: len(container.given) == 2)
    wait_until(lambda: container.replica.healthy)
    assert container.replica.port == 8002
    container.replica.stop()
    assert "the container ended with exit code 3" in container.log()


@pytest.mark.parametrize(
    ("code", "why"),
    [(0, "the container ended with exit code 0"),
     (137, "the container ended with exit code 137 SIGKILL")],
)  # fmt: skip
def test_why_a_container_ended_is_told(container: Container, code: int, why: str) -> None:
    container.code = code
    container.end.set()
    assert container.replica._run_once() == why


@pytest.mark.parametrize(
    ("raises", "why"),
    [
        (ExecutorError("no Python"), "the container could not be started: no Python"),
        (OSError("full"), "the container could not be started: full"),
        (ValueError("NUL"), "the container could not be started: NUL"),
        (JobCancelledError(), "stopped"),
    ],
)
def test_why_a_container_could_not_be_started_is_told(
    container: Container, raises: Exception, why: str
) -> None:
    container.refuses = [raises]
    assert container.replica._run_once() == why
    assert container.given == []


def test_nobody_is_asked_while_nothing_runs(container: Container) -> None:
    container.answers = [WELL]
    assert container.replica._is_well() is False
    container.replica._runs = True
    assert container.replica._is_well() is True
    container.answers = [ILL]
    assert container.replica._is_well() is False
    assert len(container.asked) == 2


def test_a_replica_that_never_began_ends(container: Container) -> None:
    container.replica.stop()
    assert container.replica.stopped.is_set()
    assert (container.replica.port, container.replica.busy, container.replica.failure) == (0, 0, "")
