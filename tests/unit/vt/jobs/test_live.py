"""The curve below a log: which job has one, how often it is looked for, and where it is shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from vertex_training.errors import OperatorError
from vertex_training_cli.jobs import waiting


class Ended:
    """An event that is set after so many waits; how long each of them was."""

    def __init__(self, looks: int) -> None:
        self.looks, self.waits = looks, list[float]()

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return len(self.waits) > self.looks


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Curves by job; a look takes ``seconds``."""
    found = SimpleNamespace(curves={}, asked=[], seconds=0.0, now=0.0)

    def curves(job: str) -> dict[str, list[float]]:
        found.asked.append(job)
        found.now += found.seconds
        values = found.curves.get(job, {})
        if isinstance(values, Exception):
            raise values
        return values

    def make(project: str, log: Any) -> Any:
        assert (project, log("told")) == ("acme", None)
        return SimpleNamespace(curves=curves)

    monkeypatch.setattr(waiting, "MetricsReader", make)
    monkeypatch.setattr(waiting.time, "monotonic", lambda: found.now)
    return found


def watch(looks: int, *, local: bool = False) -> tuple[list[str], list[float]]:
    """What is shown in so many looks at jobs a, b and c; and the waits."""
    shown: list[str] = []
    ended: Any = Ended(looks)
    jobs: Any = SimpleNamespace(ref=SimpleNamespace(project="acme", is_local=local))
    chosen: Any = ["a", "b", "c"]
    waiting._watch(jobs, chosen, shown.append, ended)
    return shown, ended.waits


def test_the_first_job_that_has_a_curve_is_shown(reader: SimpleNamespace) -> None:
    reader.curves = {"a": OperatorError("403"), "b": {}, "c": {"loss": [1.0]}}
    assert watch(2) == (["loss \u2581 1"] * 2, [15.0] * 3)
    assert reader.asked == ["a", "b", "c"] * 2
    reader.curves["a"] = {"acc": [0.5]}
    reader.asked.clear()
    assert watch(1)[0] == ["acc \u2581 0.5"]
    assert reader.asked == ["a"]
    assert watch(0) == ([], [15.0])


@pytest.mark.parametrize(
    ("local", "seconds", "waits"),
    [(True, 0.05, [1.0, 1.5]), (True, 0.01, [1.0, 1.0]), (False, 0.1, [15.0, 15.0]),
     (False, 2.0, [15.0, 60.0])],
)  # fmt: skip
def test_a_pause_is_ten_times_as_long_as_a_look(
    reader: SimpleNamespace, local: bool, seconds: float, waits: list[float]
) -> None:
    reader.seconds = seconds
    assert watch(1, local=local)[1] == pytest.approx(waits)


@pytest.mark.parametrize(("given", "begins"), [([], ""), (["no [curve] yet"], "no [curve] yet")])
def test_the_line_begins_with_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, given: list[str], begins: str
) -> None:
    shown, watched = list[str](), threading.Event()

    @contextmanager
    def status(_console: Console, text: Text) -> Iterator[Any]:
        shown.append(text.plain)
        yield SimpleNamespace(update=lambda later: shown.append(later.plain))

    def look(_jobs: Any, _chosen: Any, show: Any, _ended: threading.Event) -> None:
        show("[loss] 1")
        watched.set()

    monkeypatch.setattr(Console, "status", status)
    monkeypatch.setattr(waiting, "_watch", look)
    monkeypatch.setenv("FORCE_COLOR", "1")
    jobs: Any = object()
    with waiting.curve_of(jobs, [], *given):
        assert watched.wait(10)
    assert shown == [begins, "[loss] 1"]
