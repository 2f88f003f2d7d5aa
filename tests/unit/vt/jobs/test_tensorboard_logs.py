"""Which logs ``vt tensorboard`` shows, and the command that shows them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from localgcp.home import Home
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import tensorboard

LOCAL = StackRef(Path("/srv/checkout"), "p", "local", "local-x", "us-central1")


def job(number: str, where: str, name: str = "train", run: str = "2") -> CustomJob:
    return CustomJob(
        name=f"projects/1/locations/us-central1/customJobs/{number}",
        labels={"vt-job": name, "vt-run": run, "vt-request-id": "x"},
        job_spec={"base_output_directory": {"output_uri_prefix": where}},
    )


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the local cloud's buckets."""
    made = tmp_path / "storage"
    made.mkdir()
    home: Any = SimpleNamespace(storage=made)
    monkeypatch.setattr(Home, "find", lambda **_: home)
    return made


def put(storage: Path, name: str) -> None:
    (storage / name).parent.mkdir(parents=True)
    (storage / name).write_text("x")


def test_logs_of_local_jobs_are_links_to_files_that_grow(storage: Path, tmp_path: Path) -> None:
    put(storage, "out/a/logs/events")
    put(storage, "out/b/other/events")
    (storage / "out/c/logs").mkdir(parents=True)
    put(tmp_path, "elsewhere/logs/events")
    (shown := tmp_path / "shown").mkdir()
    jobs = [
        job("7", "gs://out/a/"), job("8", "gs://out/b"), job("9", ""), job("10", "gs://out/c"),
        job("11", "gs://../elsewhere"), job("12", "gs://out/a", "a/b", ""),
    ]  # fmt: skip
    assert tensorboard._collect(jobs, LOCAL, shown) == ["train-2-7", "a_b--12"]
    assert (shown / "train-2-7").resolve() == storage / "out/a/logs"
    assert (shown / "train-2-7/events").read_text() == "x"
    assert not (shown / "train-2-11").exists()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """The command with an environment of its own; what it ran and what it chose."""
    made = SimpleNamespace(
        python=tmp_path / "python", found=["train-2-7", "b-1-8"], ran=[], chosen=[], installed=[]
    )
    own = SimpleNamespace(folder=tmp_path / "tool", marker=tmp_path / "marker")
    monkeypatch.setattr(
        tensorboard, "ToolEnvironment",
        lambda name, pins: SimpleNamespace(**vars(own), python=made.python, name=name, pins=pins),
    )  # fmt: skip
    monkeypatch.setattr(tensorboard, "install_once", lambda *given: made.installed.append(given))
    monkeypatch.setattr(tensorboard.stacks, "find_with_scripts", lambda _: (LOCAL, None))
    monkeypatch.setattr(StackRef, "connect_clients", lambda _: None)
    listed = [job(str(number), "") for number in range(12)]
    found: Any = SimpleNamespace(list=lambda: listed, find=lambda name: job(name, "", name))
    monkeypatch.setattr(tensorboard, "Jobs", lambda _ref, _scripts: found)

    def collect(chosen: Any, _ref: Any, shown: Path) -> list[str]:
        made.chosen = [each.name.rpartition("/")[2] for each in chosen]
        made.shown = str(shown)
        return made.found

    def run(words: list[str], **options: Any) -> Any:
        made.ran.append((words, options))
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr(tensorboard, "_collect", collect)
    monkeypatch.setattr(tensorboard.subprocess, "run", run)
    return made


def test_without_names_the_newest_jobs_are_shown(command: SimpleNamespace, vt: Any) -> None:
    vt("tensorboard")
    assert command.chosen == [str(number) for number in range(10)]
    assert command.ran[0][0][-2:] == ["--port", "6006"]


def test_without_logs_it_says_whose_were_looked_for(command: SimpleNamespace, vt: Any) -> None:
    command.found = []
    done = vt("tensorboard", "a", "b")
    assert (done.exit_code, command.ran) == (1, [])
    assert done.stderr == (
        "vt tensorboard: no job has TensorBoard logs (a, b). Hint: a job writes them to "
        "$AIP_TENSORBOARD_LOG_DIR, which baseOutputDirectory sets\n"
    )


def test_it_is_installed_by_hash_once(command: SimpleNamespace, vt: Any, tmp_path: Path) -> None:
    command.python = None
    done = vt("tensorboard")
    assert (done.exit_code, done.stderr) == (
        1,
        "vt tensorboard: TensorBoard is not installed. Hint: `vt tensorboard --install`, once\n",
    )
    done = vt("tensorboard", "--install")
    assert (done.exit_code, done.stderr) == (
        0, f"vt: TensorBoard is installed in {tmp_path / 'tool'}\n",
    )  # fmt: skip
    [(folder, marker, pins, what)] = command.installed
    assert (folder, marker, what) == (tmp_path / "tool", tmp_path / "marker", "TensorBoard")
    assert (pins.name, pins.is_file()) == ("tensorboard.txt", True)
