"""What a replica runs is made ready once a job: its environment, its packages, its container."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.engines import Docker
from localgcp.containers.host import ContainerHost
from localgcp.errors import JobCancelledError, StartRefusedError
from localgcp.home import Home
from localgcp.runner import executors, packages, substitutes
from localgcp.runner.environment import Folders
from localgcp.runner.gang.cluster import Replica
from localgcp.runner.joblog import JobLog
from localgcp.runner.preparation import Preparation
from localgcp.runner.programs import ContainerProgram, HostProgram
from tests.unit.localcloud.vertex.rows import job_row

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
SKLEARN = f"{PREBUILT}/sklearn-cpu.1-6.py310:latest"
LOCAL = "us-central1-docker.pkg.dev/local-training/training/x:1"
URL = "http://127.0.0.1:1"
BASE = Path("/cache/executors/sklearn-1.6")


class Prepared:
    """The preparation of job 42, and what it fetched, built and installed."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.folder = home, home.jobs / "42"
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir(parents=True)
        self.folders = Folders(work=self.folder / "work", tmp=self.tmp, gcs=self.folder / "gcs")
        self.host, self.cancelled = ContainerHost(home, 0), threading.Event()
        self.log = JobLog(self.folder / "logs" / "workerpool0-0.log")
        self.steps: list[Any] = []
        self.preparation = Preparation(
            job_row("42", {"workerPoolSpecs": [{"containerSpec": {"imageUri": LOCAL}}]}),
            folder=self.folder, tmp=self.tmp, log=self.log, storage_url=URL, own_mount=True,
            containers=self.host, home=home, cancelled=self.cancelled,
        )  # fmt: skip
        monkeypatch.setattr(executors, "environment", self.environment)
        monkeypatch.setattr(executors, "python_version", lambda _executor: "3.10")
        monkeypatch.setattr(packages, "fetch", self.fetch)
        monkeypatch.setattr(packages, "layer", self.layer)
        monkeypatch.setattr(packages, "build", self.build)
        monkeypatch.setattr(packages, "install", self.install)

    def environment(self, executor: executors.Executor, report: executors.Report) -> Path:
        report(f"environment of {executor.framework}")
        return BASE

    def fetch(self, uris: list[str], folder: Path, url: str) -> list[Path]:
        self.steps.append(("fetch", uris, folder, url))
        folder.mkdir()
        files = [folder / uri.rpartition("/")[2] for uri in uris]
        for file in files:
            file.write_text(file.name)
        return files

    def layer(self, base: Path, folder: Path) -> Path:
        self.steps.append(("layer", base, folder))
        return folder / "bin" / "python"

    def build(
        self, python: Path, files: list[Path], target: Path, tmp: Path, run: packages.Install
    ) -> None:
        self.steps.append(("build", python, [file.name for file in files], tmp))
        (target / "a.whl").touch()

    def install(self, python: Path, wheels: list[Path], tmp: Path, run: packages.Install) -> None:
        self.steps.append(("install", python, [wheel.name for wheel in wheels], tmp))

    def program(self, spec: Mapping[str, Any], *, index: int = 0, alone: bool = True) -> Any:
        return self.preparation.program(Replica(0, index, spec), self.folders, alone=alone)

    def lines(self) -> list[str]:
        """The log, without times."""
        if not self.log.path.exists():
            return []
        return [line.partition("] ")[2] for line in self.log.path.read_text().splitlines()]


@pytest.fixture
def prepared(home: Home, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    return Prepared(home, monkeypatch)


def package(image: str, *uris: str, **task: Any) -> dict[str, Any]:
    given = {"executorImageUri": image, "packageUris": [*uris], "pythonModule": "train.task"}
    return {"pythonPackageSpec": {**given, **task}}


def test_packages_are_installed_once_for_all_replicas_that_have_the_same(
    prepared: Prepared,
) -> None:
    spec = package(SKLEARN, "gs://b/a-1.tar.gz", args=["--x"])
    program = prepared.program(spec)
    python = prepared.folder / "venv" / "bin" / "python"
    assert isinstance(program, HostProgram)
    assert program.argv == [str(python), "-m", "train.task", "--x"]
    assert program.path == f"{python.parent}{os.pathsep}{os.defpath}"
    assert (program.folders, program.storage_url) == (prepared.folders, URL)
    assert program.gcs == Path("/gcs")
    first = [
        ("fetch", ["gs://b/a-1.tar.gz"], prepared.folder / "packages", URL),
        ("layer", BASE, prepared.folder / "venv"),
        ("build", python, ["a-1.tar.gz"], prepared.tmp),
        ("install", python, ["a.whl"], prepared.tmp),
    ]
    assert prepared.steps == first
    said = [
        f"{SKLEARN} is stood in for by an environment with scikit-learn==1.6.1",
        "environment of scikit-learn==1.6.1",
        "building a-1.tar.gz",
        "installing a-1.tar.gz",
    ]
    assert prepared.lines() == said
    assert prepared.program(spec, index=1).argv == program.argv
    assert (prepared.steps, prepared.lines()) == (first, said)
    # Another pool has other packages: an environment of its own beside it.
    other = package(SKLEARN, "gs://b/a-1.tar.gz", "gs://b/b-2.tar.gz")
    second = prepared.folder / "venv-1" / "bin" / "python"
    assert prepared.program(other).argv == [str(second), "-m", "train.task"]
    assert prepared.steps[4] == (
        "fetch", ["gs://b/a-1.tar.gz", "gs://b/b-2.tar.gz"], prepared.folder / "packages-1", URL,
    )  # fmt: skip
    assert prepared.lines()[len(said) :] == [
        "environment of scikit-learn==1.6.1",
        "building a-1.tar.gz, b-2.tar.gz",
        "installing a-1.tar.gz, b-2.tar.gz",
    ]
    assert substitutes.read(prepared.home, "42") == []


def test_an_executor_image_without_a_stand_in_is_refused(prepared: Prepared) -> None:
    image = f"{PREBUILT}/sklearn-cpu.1-0:latest"
    with pytest.raises(StartRefusedError) as refused:
        prepared.program(package(image, "gs://b/a"))
    assert (refused.value.code, refused.value.message) == (
        9,
        f"the executor image {image} has no stand-in here (the nearest is sklearn-cpu.1-6.py310). "
        "Hint: `vt local start --prebuilt nearest` takes it",
    )
    substitutes.take_nearest(prepared.home, on=True)
    assert prepared.program(package(image, "gs://b/a")).argv[2] == "train.task"
    assert substitutes.read(prepared.home, "42") == [
        "on scikit-learn 1.6.1, not in sklearn-cpu.1-0"
    ]


def test_a_command_in_a_prebuilt_image_finds_its_framework(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/own/bin")
    monkeypatch.setattr(executors, "python_version", lambda _executor: "3.11")
    program = prepared.program({"containerSpec": {"imageUri": SKLEARN, "command": ["train"]}})
    assert (program.argv, program.path) == (["train"], f"{BASE}/bin{os.pathsep}/own/bin")
    assert substitutes.read(prepared.home, "42") == [
        "on Python 3.11, not the image's 3.10",
        f"on this host, not in {SKLEARN}",
    ]


@pytest.mark.parametrize(("alone", "name"), [(True, "vt-42"), (False, "vt-42-workerpool0-1")])
def test_an_image_of_a_local_project_runs_in_a_container(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, alone: bool, name: str
) -> None:
    engine = Docker("docker", "home", "1:1")
    monkeypatch.setattr(ContainerHost, "engine", engine)
    monkeypatch.setattr(prepared.host, "port", 5000)
    task = {"imageUri": LOCAL}
    program = prepared.program({"containerSpec": task}, index=1, alone=alone)
    assert isinstance(program, ContainerProgram)
    assert (program.host, program.engine, program.task) == (prepared.host, engine, task)
    assert (program.name, program.folders, program.storage_url) == (name, prepared.folders, URL)
    assert program.volumes == {"/gcs": prepared.folders.gcs}
    assert prepared.lines() == [f"{LOCAL} runs in a container, by docker"]


def test_without_a_registry_no_container_runs(prepared: Prepared) -> None:
    with pytest.raises(StartRefusedError) as refused:
        prepared.program({"containerSpec": {"imageUri": LOCAL}})
    assert (refused.value.code, refused.value.message) == (
        9,
        f"{LOCAL} cannot run here: there is no container registry (`make containers` installs "
        "what is missing, or says what to install).",
    )


def test_a_cancel_ends_the_preparation_at_its_next_step(prepared: Prepared) -> None:
    prepared.cancelled.set()
    with pytest.raises(JobCancelledError):
        prepared.program(package(SKLEARN, "gs://b/a-1.tar.gz"))
    assert prepared.lines()[-1] == "environment of scikit-learn==1.6.1"
    assert prepared.steps == []


def test_a_command_of_the_preparation_runs_in_the_jobs_folder_and_log(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []

    def build(
        _python: Path, _files: list[Path], _target: Path, _tmp: Path, run: packages.Install
    ) -> None:
        script = "import os, sys; print(os.getcwd(), os.environ['A']); sys.exit(3)"
        codes.append(run([sys.executable, "-c", script], {"A": "b"}))

    monkeypatch.setattr(packages, "build", build)
    prepared.program(package(SKLEARN, "gs://b/a-1.tar.gz"))
    assert codes == [3]
    assert f"{prepared.tmp} b" in prepared.log.path.read_text().splitlines()
    assert list(prepared.home.children.iterdir()) == []

    def cancel(
        _python: Path, _files: list[Path], _target: Path, _tmp: Path, run: packages.Install
    ) -> None:
        prepared.cancelled.set()
        run(["sleep", "600"], {"PATH": os.defpath})

    monkeypatch.setattr(packages, "build", cancel)
    with pytest.raises(JobCancelledError):
        prepared.program(package(SKLEARN, "gs://b/c-1.tar.gz"))
