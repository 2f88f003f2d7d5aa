"""A container is healthy, gets no requests, and is started again as documented."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import (
    ExecutorError,
    JobCancelledError,
)
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.runner.replica import Ending, Outcome
from localgcp.serving import replicas
from localgcp.serving.replicas import Answer, Replica, Timing

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


def test_times_are_those_of_the_service() -> None:
    assert Timing() == Timing(health=10.0, tries=3, startup=0.1, restart=2.0, drain=60.0)


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
