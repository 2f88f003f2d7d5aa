"""The stand-in of Cloud Build, called by the official client."""

from __future__ import annotations

import datetime
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import FailedPrecondition, MethodNotImplemented
from google.cloud.devtools import cloudbuild_v1
from google.cloud.logging_v2 import types

from localgcp.cloudbuild import runner
from localgcp.cloudbuild.records import Build, BuildTable, Status
from localgcp.cloudbuild.runner import BuildAccess, engine_request
from localgcp.cloudbuild.service import CloudBuild
from localgcp.errors import UnsupportedBuildError
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from tests.unit.localcloud.cloudbuild.conftest import BUILDER, IMAGE, REPOSITORY, Builds
from tests.unit.localcloud.conftest import PROJECT, set_grant, wait_until

DOCKER = "gcr.io/cloud-builders/docker"
LIVE = ("QUEUED", "WORKING")


def request(builds: Builds, dockerfile: str = "FROM x\n", **changes: Any) -> dict[str, Any]:
    """A build of an image, with these fields changed."""
    blob = builds.put_source(dockerfile)
    source = {"bucket": blob.bucket.name, "object_": blob.name, "generation": blob.generation}
    build = {
        "source": {"storage_source": source},
        "steps": [{"name": DOCKER, "args": ["buildx", "build", "--tag", f"{IMAGE}:1", "."]}],
        "images": [f"{IMAGE}:1"],
        "service_account": f"projects/{PROJECT}/serviceAccounts/{BUILDER}",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
        **changes,
    }
    return {"parent": builds.parent, "project_id": PROJECT, "build": build}


def start(builds: Builds, dockerfile: str = "FROM x\n", **changes: Any) -> cloudbuild_v1.Build:
    operation = builds.client.create_build(request(builds, dockerfile, **changes), retry=None)
    return operation.metadata.build  # pyright: ignore


def ended(builds: Builds, build: cloudbuild_v1.Build) -> cloudbuild_v1.Build:
    def now() -> cloudbuild_v1.Build:
        return builds.client.get_build({"name": build.name, "project_id": PROJECT, "id": build.id})

    wait_until(lambda: now().status.name not in LIVE)
    return now()


def log(builds: Builds, build: cloudbuild_v1.Build) -> str:
    return builds.cloud_build.builds.log(build.id).read_text()


def test_push_needs_the_right_on_that_repository(builds: Builds) -> None:
    builds.revoke(REPOSITORY)
    build = ended(builds, start(builds))
    assert build.status.name == "FAILURE"
    assert build.failure_info.type_.name == "PUSH_NOT_AUTHORIZED"
    assert 'Permission "artifactregistry.repositories.uploadArtifacts" denied' in log(builds, build)


def test_build_without_the_right_to_write_logs_has_none(builds: Builds) -> None:
    builds.revoke(f"projects/{PROJECT}")
    build = ended(builds, start(builds))
    assert build.status.name == "SUCCESS"
    assert not builds.cloud_build.builds.log(build.id).exists()


def test_build_without_an_installed_builder_fails(
    make_builds: Callable[..., Builds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "installed_builder", tuple)
    builds = make_builds(program=None)
    build = ended(builds, start(builds))
    assert build.status.name == "FAILURE"
    assert build.status_detail == "the local cloud has no image builder"
    assert "no installed package provides an image builder" in log(builds, build)


def test_build_that_takes_too_long_is_ended(builds: Builds) -> None:
    build = ended(builds, start(builds, "SLEEP 60\n", timeout="1s"))
    assert build.status.name == "TIMEOUT"


def cut(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)[:-9]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"no archive", "Not a gzipped file (b'no')"),
        (cut(b"archive"), "Compressed file ended before the end-of-stream marker"),
        (cut(b"")[:10] + b"\xff" * 20, "Error -3 while decompressing data"),
    ],
)
def test_source_that_cannot_be_unpacked_fails_the_build(
    builds: Builds, sent: bytes, reason: str
) -> None:
    asked = request(builds)
    blob = builds.bucket.blob("images/bad.tar.gz")
    blob.upload_from_string(sent)
    asked["build"]["source"]["storage_source"] |= {
        "object_": blob.name, "generation": blob.generation,
    }  # fmt: skip
    build = ended(builds, builds.client.create_build(asked, retry=None).metadata.build)  # pyright: ignore
    assert (build.status.name, build.failure_info.type_.name, build.status_detail) == (
        "FAILURE", "FETCH_SOURCE_FAILED", "failed to fetch the source",
    )  # fmt: skip
    assert f"cannot fetch the source: {reason}" in log(builds, build)


def test_build_that_this_machine_cannot_run_fails(builds: Builds) -> None:
    build = ended(builds, start(builds, steps=[{"name": "ubuntu"}]))
    assert (build.status.name, build.failure_info.type_.name, build.status_detail) == (
        "FAILURE", "USER_BUILD_STEP", "the local cloud cannot run this build",
    )  # fmt: skip
    text = "the local cloud supports only builds by docker buildx; not supported: step ubuntu"
    assert text in log(builds, build)


def test_builder_that_cannot_start_is_an_internal_error(make_builds: Callable[..., Builds]) -> None:
    builds = make_builds(program=("/none/x",))
    build = ended(builds, start(builds))
    assert (build.status.name, build.status_detail) == (
        "INTERNAL_ERROR", "/none/x: No such file or directory",
    )  # fmt: skip
    assert not builds.cloud_build.builds.work(build.id).exists()


def test_cancelled_build_ends_at_once_and_only_once(builds: Builds) -> None:
    build = start(builds, "SLEEP 60\n")
    named = {"name": build.name, "project_id": PROJECT, "id": build.id}
    assert builds.client.cancel_build(named).status.name == "CANCELLED"
    with pytest.raises(FailedPrecondition, match="cannot cancel a build that has completed"):
        builds.client.cancel_build(named)


def test_builds_end_with_their_server(builds: Builds) -> None:
    running = start(builds, "SLEEP 60\n")
    table = builds.cloud_build.builds
    written = table.log(running.id)
    wait_until(lambda: written.exists() and "SLEEP" in written.read_text())
    builds.cloud_build.stop()
    for id_, status in (("b2", Status.QUEUED), ("c3", Status.WORKING), ("d4", Status.SUCCESS)):
        table.add(stored_build(id_, status))
    cloud = builds.cloud
    CloudBuild(cloud.home, cloud.store, "http://s", dict)  # the next start
    found = [table.get(id_) for id_ in (running.id, "b2", "c3", "d4")]
    assert [(Status(each.status).name, each.status_detail) for each in found if each] == [
        *[("INTERNAL_ERROR", "the local cloud was stopped")] * 3, ("SUCCESS", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["retry_build", "create_build_trigger", "list_worker_pools"])
def test_other_calls_are_not_implemented(builds: Builds, method: str) -> None:
    with pytest.raises(MethodNotImplemented):
        getattr(builds.client, method)({}, retry=None)


def test_dollars_reach_the_engine_as_they_were_written(
    make_builds: Callable[..., Builds], tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    script = f"import shutil, sys; shutil.copy(sys.argv[1], {str(seen)!r})"
    file = tmp_path / "copy.py"
    file.write_text(script)
    builds = make_builds(program=(sys.executable, str(file)))
    args = ["--build-arg", "A=$$HOME$_X${_X}$_NONE", "--tag", f"{IMAGE}:1", "."]
    step = {"name": DOCKER, "args": ["buildx", "build", *args]}
    ended(builds, start(builds, steps=[step], substitutions={"_X": "x"}))
    assert '"A": "$HOMExx"' in seen.read_text()


EMAIL = f"builder@{PROJECT}.iam.gserviceaccount.com"
HOME = f"projects/{PROJECT}"
DOCKER_REPOSITORY = f"{HOME}/locations/us-central1/repositories/docker"
TRAINER_IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/docker/trainer:v1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(SERVICE, f"{PROJECT}/cloudbuild.googleapis.com", PROJECT, {}, {})
    made.put(ACCOUNT, EMAIL, PROJECT, {}, {"email": EMAIL})
    return made


@pytest.fixture
def access(store: Store) -> BuildAccess:
    return BuildAccess(store, PROJECT, EMAIL)


@pytest.mark.parametrize("place", [HOME, DOCKER_REPOSITORY])
@pytest.mark.parametrize("role", ["writer", "repoAdmin", "admin"])
def test_an_image_is_pushed_with_a_role_on_its_repository_or_on_the_project(
    store: Store, access: BuildAccess, place: str, role: str
) -> None:
    set_grant(store, place, "roles/artifactregistry.reader", EMAIL)
    assert not access.pushes(TRAINER_IMAGE)
    set_grant(store, place, f"roles/artifactregistry.{role}", EMAIL)
    assert access.pushes(TRAINER_IMAGE)
    assert access.pushes(TRAINER_IMAGE.replace("docker/", "others/")) is (place == HOME)
    assert not access.pushes("python:3.11")
    assert not access.reads("source")


STEPS_IMAGE = "us-docker.pkg.dev/local-a/training/titanic"


def build_steps(*args: str, create: bool = True, **given: Any) -> cloudbuild_v1.Build:
    steps = [{"name": DOCKER, "args": ["buildx", "create", "--use"]}] if create else []
    steps.append({"name": f"{DOCKER}:24", "args": ["buildx", "build", *args]})
    whole = {
        "steps": steps,
        "images": [f"{STEPS_IMAGE}:v1"],
        "timeout": datetime.timedelta(seconds=90),
        **given,
    }
    return cloudbuild_v1.Build(whole)


TAG = ("--tag", f"{STEPS_IMAGE}:v1")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (build_steps(*TAG, steps=[{"name": "ubuntu"}]), "step ubuntu"),
        (build_steps(*TAG, steps=[{"name": DOCKER, "entrypoint": "sh"}]), f"step {DOCKER}"),
        (build_steps(*TAG, steps=[{"name": DOCKER, "args": ["buildx", "create"]}]),
         "docker commands other than `buildx create` and one `buildx build`"),
        (build_steps(*TAG, "--secret", "x"), "docker buildx build --secret"),
        (build_steps("--load", "."), "docker buildx build without --tag"),
        (build_steps(*TAG, images=["other:v1"]),
         f"images ['other:v1'] differ from --tag {STEPS_IMAGE}:v1"),
    ],
)  # fmt: skip
def test_unsupported_step_is_refused_by_name(given: cloudbuild_v1.Build, text: str) -> None:
    with pytest.raises(UnsupportedBuildError) as refused:
        engine_request(given, "")
    assert str(refused.value) == text


BEGAN = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.fixture
def table(tmp_path: Path) -> BuildTable:
    return BuildTable(tmp_path / "builds")


def stored_build(id_: str = "a1", status: Status = Status.QUEUED, **given: Any) -> Build:
    return Build(id=id_, project_id="local-a", status=status, create_time=BEGAN, **given)


def read(table: BuildTable, project: str = "local-a", id_: str = "a1") -> list[types.LogEntry]:
    lines = table.lines(project, {"resource.labels.build_id": id_})
    return [line.message() for line in lines]


def entry(number: int, text: str) -> types.LogEntry:
    return types.LogEntry(
        log_name="projects/local-a/logs/cloudbuild",
        resource={
            "type": "build",
            "labels": {"build_id": "a1", "project_id": "local-a"},
        },
        text_payload=text,
        timestamp=BEGAN + datetime.timedelta(milliseconds=number),
        insert_id=f"a1-{number:09}",
        severity="INFO",
    )


@pytest.mark.parametrize(
    ("status", "text", "lines"),
    [
        (Status.SUCCESS, "one\n\ntwo", ["one", "", "two"]),
        (Status.SUCCESS, "one\n", ["one"]),
        (Status.WORKING, "one\ntw", ["one"]),
        (Status.WORKING, "one\n", ["one"]),
        (Status.SUCCESS, "", []),
        (Status.SUCCESS, "\udcff a\n", ["\ufffd a"]),
    ],
)
def test_lines_of_a_log_are_entries(
    table: BuildTable, status: Status, text: str, lines: list[str]
) -> None:
    table.add(stored_build(status=status))
    assert read(table) == []
    table.log("a1").write_bytes(text.encode(errors="surrogateescape"))
    assert read(table) == [entry(number, line) for number, line in enumerate(lines)]
    assert read(table, "local-b") == read(table, id_="b2") == []
    assert list(table.lines("local-a", {})) == []
