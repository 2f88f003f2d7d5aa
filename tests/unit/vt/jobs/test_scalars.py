"""TensorBoard's event files. Those of the fixtures were written by TensorBoard 2.20."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import Cloud
from tests.unit.vt.jobs.event_files import event, file, scalar, tensor
from tests.unit.vt.jobs.test_metrics import cloud, vt
from vertex_training_cli.jobs import scalars
from vertex_training_cli.jobs.objects import Objects

__all__ = ["cloud", "vt"]
WRITTEN = Path("tests/fixtures/tensorboard").absolute()


@pytest.fixture
def logs(cloud: Cloud) -> Callable[[str, bytes], None]:
    """Write a file of the TensorBoard logs of job `b`."""
    assert cloud.storage is not None
    out = storage_client(cloud.storage.url).bucket("out")

    def write(name: str, content: bytes) -> None:
        out.blob(f"b/logs/{name}").upload_from_string(content)

    return write


@pytest.fixture
def real(logs: Callable[[str, bytes], None]) -> None:
    """Job `b` wrote `simple_value`, as PyTorch does, and tensors, as TensorFlow does."""
    for path in WRITTEN.rglob("events.*"):
        logs(path.relative_to(WRITTEN).as_posix(), path.read_bytes())


@pytest.mark.usefixtures("real")
def test_scalars_of_pytorch_and_tensorflow_are_metrics_and_curves(vt: Callable[..., str]) -> None:
    newest = {
        "train/loss": 0.25,
        "precise": 0.1,
        "validation/epoch_loss": 1.5,
        "validation/rate": 0.125,
    }
    listed = json.loads(vt("list", "--metrics", "--format", "json"))
    assert {each["job"]: each["metrics"] for each in listed} == {"a": {"loss": 0.25}, "b": newest}
    assert "train/loss" in vt("list", "--metrics")
    assert "validation/epoch_loss" in vt("show", "b")
    [compared] = json.loads(vt("compare", "b", "--format", "json"))
    assert compared["metrics"] == newest
    assert compared["curves"]["train/loss"] == [1.0, 0.5, 0.25]
    assert compared["curves"]["validation/epoch_loss"] == [2.0, 1.5]
    assert "█▃▁ 1 → 0.25" in vt("compare", "b")
    vt("compare", "b", "--html", "runs.html")
    assert "<strong>train/loss</strong>, 0.25 to 1, 3 values" in Path("runs.html").read_text()


def test_what_the_job_wrote_into_its_own_files_wins_over_a_scalar(
    cloud: Cloud, vt: Callable[..., str]
) -> None:
    assert cloud.storage is not None
    written = file(event(1, scalar("loss", 7.0)), event(1, scalar("other", 0.5)))
    name = "a/logs/events.out.tfevents.1"
    storage_client(cloud.storage.url).bucket("out").blob(name).upload_from_string(written)
    [found] = json.loads(vt("compare", "a", "--format", "json"))
    assert found["metrics"] == {"loss": 0.25, "other": 0.5}
    assert found["curves"]["loss"] == [1.0, 0.5, 0.25]
    assert found["curves"]["other"] == [0.5]


def test_values_are_in_order_of_steps_and_a_restart_replaces_those_of_the_run_before(
    logs: Callable[[str, bytes], None], vt: Callable[..., str]
) -> None:
    logs("events.out.tfevents.1", file(*(event(n, scalar("loss", n)) for n in (3, 1, 2))))
    logs("events.out.tfevents.2", file(event(3, scalar("loss", 9)), event(4, scalar("loss", 8))))
    logs("train/events.out.tfevents.1", file(event(1, scalar("/loss", 5))))
    logs("notes.txt", b"no events")
    [found] = json.loads(vt("compare", "b", "--format", "json"))
    assert found["curves"] == {"loss": [1.0, 2.0, 9.0, 8.0], "train//loss": [5.0]}


def test_only_files_that_changed_are_read_again(
    logs: Callable[[str, bytes], None], vt: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs("events.out.tfevents.1", file(event(1, scalar("loss", 1))))
    asked: list[str] = []
    end_of = Objects.end_of
    monkeypatch.setattr(
        Objects, "end_of", lambda self, *words: asked.append(words[0]) or end_of(self, *words)
    )
    vt("compare", "b")  # metrics and curves
    assert asked == ["gs://out/b/logs/events.out.tfevents.1"]


def test_tensors_of_one_number_are_scalars_whatever_their_form() -> None:
    half = b"\0\0\0\x3f"
    forms = [tensor("x", 1, 4, half), tensor("x", 1, 5, half), tensor("x", 2, 4, b"\0" * 8)]
    assert [list(scalars.scalars(event(-1, form))) for form in forms] == [
        [("x", -1, 0.5)], [("x", -1, 0.5)], [("x", -1, 0.0)],
    ]  # fmt: skip
    others = [tensor("x", 7, 8, b"text"), tensor("x", 1, 4, half * 2), tensor("x", 1, 5, b"")]
    assert [list(scalars.scalars(event(1, form))) for form in others] == [[], [], []]
