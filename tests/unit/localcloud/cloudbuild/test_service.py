"""The stand-in of Cloud Build, called by the official client."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud.devtools import cloudbuild_v1
from google.cloud.logging_v2 import types

from localgcp.cloudbuild import checks, runner
from localgcp.cloudbuild.records import Build, BuildTable, Status, entries_of
from localgcp.cloudbuild.steps import engine_request
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


def test_a_push_needs_the_right_on_that_repository(builds: Builds) -> None:
    builds.revoke(REPOSITORY)
    build = ended(builds, start(builds))
    assert build.status.name == "FAILURE"
    assert build.failure_info.type_.name == "PUSH_NOT_AUTHORIZED"
    assert 'Permission "artifactregistry.repositories.uploadArtifacts" denied' in log(builds, build)


def test_without_the_right_to_write_logs_a_build_runs_and_has_none(builds: Builds) -> None:
    builds.revoke(f"projects/{PROJECT}")
    build = ended(builds, start(builds))
    assert build.status.name == "SUCCESS"
    assert "roles/logging.logWriter" in build.warnings[0].text
    assert not builds.cloud_build.builds.log(build.id).exists()


def test_where_no_builder_is_installed_a_build_fails_with_a_plain_line(
    make_builds: Callable[..., Builds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "installed_builder", tuple)
    builds = make_builds(program=None)
    build = ended(builds, start(builds))
    assert build.status.name == "FAILURE"
    assert build.status_detail == "the local cloud has no image builder"
    assert "no installed package has an image builder" in log(builds, build)


def test_a_build_that_takes_too_long_is_ended(builds: Builds) -> None:
    build = ended(builds, start(builds, "SLEEP 60\n", timeout="1s"))
    assert build.status.name == "TIMEOUT"


def test_a_build_that_waits_too_long_expires(make_builds: Callable[..., Builds]) -> None:
    builds = make_builds(slots=1)
    first = start(builds, "SLEEP 60\n")
    # Not before it has fetched its source: the second build writes the same object anew.
    written = builds.cloud_build.builds.log(first.id)
    wait_until(lambda: written.exists() and "SLEEP" in written.read_text())
    second = start(builds, queue_ttl="1s")
    assert ended(builds, second).status.name == "EXPIRED"
    builds.client.cancel_build({"name": first.name, "project_id": PROJECT, "id": first.id})
    assert builds.states() == ["CANCELLED", "EXPIRED"]


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
def access(store: Store) -> checks.BuildAccess:
    return checks.BuildAccess(store, PROJECT, EMAIL)


def build(**given: Any) -> cloudbuild_v1.Build:
    right = {
        "steps": [{"name": "gcr.io/cloud-builders/docker"}],
        "service_account": f"{HOME}/serviceAccounts/{EMAIL}",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
    }
    return cloudbuild_v1.Build(right | given)


@pytest.mark.parametrize("place", [HOME, DOCKER_REPOSITORY])
@pytest.mark.parametrize("role", ["writer", "repoAdmin", "admin"])
def test_an_image_is_pushed_with_a_role_on_its_repository_or_on_the_project(
    store: Store, access: checks.BuildAccess, place: str, role: str
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
         "docker, other than buildx create and one buildx build"),
        (build_steps(*TAG, "--secret", "x"), "docker buildx build --secret"),
        (build_steps("--load", "."), "docker buildx build without --tag"),
        (build_steps(*TAG, images=["other:v1"]),
         f"images ['other:v1'] beside --tag {STEPS_IMAGE}:v1"),
    ],
)  # fmt: skip
def test_what_the_engine_cannot_do_is_refused_by_its_name(
    given: cloudbuild_v1.Build, text: str
) -> None:
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
    return list(entries_of(table)(project, {"resource.labels.build_id": id_}))


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
def test_the_lines_of_a_builds_log_are_entries(
    table: BuildTable, status: Status, text: str, lines: list[str]
) -> None:
    table.add(stored_build(status=status))
    assert read(table) == []
    table.log("a1").write_bytes(text.encode(errors="surrogateescape"))
    assert read(table) == [entry(number, line) for number, line in enumerate(lines)]
    assert read(table, "local-b") == read(table, id_="b2") == []
    assert list(entries_of(table)("local-a", {})) == []
