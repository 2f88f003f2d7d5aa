"""Images built by Cloud Build: what is started, followed, joined, cancelled and told."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory.store import SERVICE
from tests.unit.localcloud.cloudbuild.conftest import (
    IMAGE,
    Builds,
    tarred,
)
from tests.unit.localcloud.conftest import PROJECT
from vertex_training.errors import ImageBuildError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import building, cloud_build
from vertex_training_cli.images.cloud_build import BuildService, CloudBuildEngine
from vertex_training_cli.images.programs import Build

ENGINE = CloudBuildEngine(PROJECT, "us-central1", poll_seconds=0.05)


@pytest.fixture
def a_build(tmp_path: Path) -> Callable[..., Build]:
    def make(dockerfile: str = "FROM x\nRUN y\n", **changes: Any) -> Build:
        archive = tmp_path / f"context-{len(list(tmp_path.iterdir()))}.tar"
        archive.write_bytes(tarred(dockerfile))
        fields: dict[str, Any] = {
            "name": "titanic",
            "archive": archive,
            "context": "jobs/titanic",
            "dockerfile": "Dockerfile",
            "build_args": {"PRICE": "$5"},
            "target": "",
            "image": IMAGE,
            "tag": "context-" + "a" * 32,
            "labels": {},
            "identity": "a" * 64,
            "timeout": 60.0,
            **changes,
        }
        return Build(**fields)

    return make


def failure(build: Build, write_log: Callable[[str], None] = print) -> ImageBuildError:
    with pytest.raises(ImageBuildError) as failed:
        ENGINE.build(build, write_log)
    return failed.value


def test_cloud_build_is_what_builds_for_google_and_not_for_a_local_project() -> None:
    of_google = StackRef(Path(), "x", "dev", "acme-ml-dev", "us-central1")
    assert building.choose_engine(None, of_google).name == "cloud-build"
    local = StackRef(Path(), "x", "local", "local-training", "us-central1")
    assert building.choose_engine("cloud-build", local).name == "cloud-build"


@pytest.mark.parametrize("place", [f"{PROJECT}/others", "acme-other/training-local"])
def test_images_are_built_for_repositories_of_the_projects_stacks_alone(
    builds: Builds, a_build: Callable[..., Build], place: str
) -> None:
    error = failure(a_build(image=f"us-central1-docker.pkg.dev/{place}/titanic"))
    repository = place.partition("/")[2]
    assert (error.message, error.hint) == (
        f"repository {repository} belongs to no stack, so no Cloud Build account can push to it.",
        "build on this machine with `--engine docker`, `podman` or `buildah`.",
    )
    assert builds.all() == []


def test_build_goes_on_without_the_right_to_read_logs(
    builds: Builds, a_build: Callable[..., Build]
) -> None:
    lines: list[str] = []
    builds.cloud.store.delete(SERVICE, f"{PROJECT}/logging.googleapis.com")
    assert ENGINE.build(a_build(), lines.append).startswith("sha256:")
    [told] = [line for line in lines if "cannot read the log" in line]
    assert f"roles/logging.viewer in project {PROJECT}" in told


def test_build_that_takes_too_long_is_reported_with_its_limit(
    builds: Builds, a_build: Callable[..., Build]
) -> None:
    error = failure(a_build("SLEEP 60\n", timeout=1.0))
    assert "exceeded its limit of 1 s" in error.message
    assert error.hint == "raise --timeout."


def interrupt(line: str) -> None:
    if line.startswith("SLEEP"):
        raise KeyboardInterrupt


def test_ctrl_c_cancels_the_build_and_waits_for_its_end(
    builds: Builds, a_build: Callable[..., Build]
) -> None:
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        interrupt(line)

    with pytest.raises(KeyboardInterrupt):
        ENGINE.build(a_build("SLEEP 60\n"), write)
    assert builds.states() == ["CANCELLED"]
    assert lines[-1].endswith("has the state CANCELLED")


def test_ctrl_c_leaves_a_build_that_another_command_started(
    builds: Builds, a_build: Callable[..., Build]
) -> None:
    build, lines = a_build("FROM x\nSLEEP 3\n"), list[str]()

    def write(line: str) -> None:
        lines.append(line)
        interrupt(line)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ENGINE.build, build, print)
        while not builds.all():
            time.sleep(0.05)
        with pytest.raises(KeyboardInterrupt):
            ENGINE.build(build, write)
        assert first.result().startswith("sha256:")
    assert builds.states() == ["SUCCESS"]
    assert "continues. To cancel the build: gcloud builds cancel" in lines[-1]


class KilledError(BaseException):
    """Stands for SIGKILL: nothing catches it."""


STEPS = [
    (cloud_build, "upload"),
    (BuildService, "list_tagged"),
    (BuildService, "create"),
    (BuildService, "get"),
]


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
def test_killed_at_any_step_the_next_run_ends_with_one_build(
    builds: Builds,
    a_build: Callable[..., Build],
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    step: str,
    side: str,
) -> None:
    real = getattr(owner, step)

    def killed(*args: Any, **kwargs: Any) -> Any:
        if side == "after":
            real(*args, **kwargs)
        raise KilledError

    build = a_build("FROM x\nSLEEP 1\n")
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, killed)
        with pytest.raises(KilledError):
            ENGINE.build(build, print)
    assert ENGINE.build(build, print).startswith("sha256:")
    assert builds.states() == ["SUCCESS"]


def test_simultaneous_builds_of_one_image_end_as_one(
    builds: Builds, a_build: Callable[..., Build]
) -> None:
    build = a_build("FROM x\nSLEEP 2\n")
    with ThreadPoolExecutor(3) as pool:
        digests = {*pool.map(lambda _: ENGINE.build(build, print), range(3))}
    assert len(digests) == 1
    assert builds.states().count("SUCCESS") == 1
    assert {*builds.states()} <= {"SUCCESS", "CANCELLED"}


def test_planted_archive_is_refused(builds: Builds, a_build: Callable[..., Build]) -> None:
    ENGINE.build(a_build(), print)
    [blob] = builds.bucket.list_blobs()
    builds.bucket.blob(blob.name).upload_from_string(b"evil")
    error = failure(a_build(tag="context-" + "c" * 32))
    assert "in its name: another program wrote the object" in error.message
    assert len(builds.all()) == 1


def test_local_project_needs_its_local_cloud(
    a_build: Callable[..., Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    assert "vt local shell" in failure(a_build()).message
