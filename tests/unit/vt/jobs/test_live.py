"""The curve below a log: which job has one, how often it is looked for, and where it is shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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
