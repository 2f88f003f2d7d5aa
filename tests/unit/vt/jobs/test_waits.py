"""What a wait for jobs is told of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob
from rich.console import Console

from vertex_training_cli.jobs import waiting
from vertex_training_cli.jobs.service import kind_of


def job(name: str, run: str) -> CustomJob:
    labels = {"vt-request-id": "x", "vt-job": name, "vt-run": run}
    return CustomJob(name=name, display_name=name, labels=labels)


def test_a_wait_reads_the_job_its_log_its_ladder_and_its_idle_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, told = list[Any](), list[Any]()
    fit = job("fit", "1")
    ref: Any = SimpleNamespace(project="acme", region="us-central1")
    service: Any = SimpleNamespace(ref=ref, get=lambda name: asked.append(name) or fit)
    service.of = lambda _job: service

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
    monkeypatch.setattr(waiting.deployed, "ladder_of", lambda *given: ("ladder", *given))
    monkeypatch.setattr(waiting.deployed, "idle_stop_of", lambda *given: ("idle stop", *given))
    monkeypatch.setattr(waiting, "wait_for_job", wait_for_job)
    monkeypatch.setattr(waiting, "curve_of", curve)
    waiting.wait_for([fit], service, "running", 60)
    assert told == [
        ("ladder", fit, ref), ("idle stop", fit, ref), ["fit-1 0", "fit-1 1", "fit-2 0", "fit-2 1"],
    ]  # fmt: skip
    place = ("acme", "us-central1", kind_of(fit))
    assert asked == [place, "fit", "acme", place]


@contextmanager
def curve(_jobs: Any, _chosen: Any, text: str) -> Iterator[Console | None]:
    assert text == "waiting; Ctrl-C ends the waiting, not the job"
    yield None
