"""The stand-in of Cloud Build, called by the official client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild import runner
from tests.unit.localcloud.cloudbuild.conftest import (
    BUILDER,
    IMAGE,
    REPOSITORY,
    STAGING,
    Builds,
)
from tests.unit.localcloud.conftest import PROJECT, wait_until

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


def refused(builds: Builds, **changes: Any) -> str:
    with pytest.raises(GoogleAPICallError) as failed:
        start(builds, **changes)
    assert not builds.all()
    return f"{failed.value.grpc_status_code.name}: {failed.value.message}"  # pyright: ignore


def test_a_source_is_read_at_its_generation(builds: Builds) -> None:
    given = request(builds)
    builds.put_source("FROM another\n")
    with pytest.raises(GoogleAPICallError, match=r"could not resolve source.*404.*No such object"):
        builds.client.create_build(given, retry=None)


def test_the_build_account_needs_to_read_the_source(builds: Builds) -> None:
    builds.revoke(STAGING)
    text = refused(builds)
    assert text.startswith("INVALID_ARGUMENT: could not resolve source: googleapi: Error 403")
    assert "does not have storage.objects.get access" in text


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


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"service_account": ""}, "INVALID_ARGUMENT: invalid value for 'build.service_account'"),
        (
            {"service_account": f"projects/{PROJECT}/serviceAccounts/x@y"},
            "PERMISSION_DENIED: caller does not have permission to act as service account",
        ),
        ({"options": {}}, "INVALID_ARGUMENT: if 'build.service_account' is specified"),
        ({"steps": []}, "INVALID_ARGUMENT: invalid build: no build steps defined"),
        ({"tags": ["a b"]}, "INVALID_ARGUMENT: invalid build tag"),
        ({"substitutions": {"x": "y"}}, "INVALID_ARGUMENT: invalid value for 'build.substitut"),
        ({"images": ["docker.io/x"]}, "INVALID_ARGUMENT: invalid image name"),
        ({"timeout": "90000s"}, "INVALID_ARGUMENT: invalid build: timeout exceeds 24h"),
        ({"source": {}}, "INVALID_ARGUMENT: invalid build: the local cloud takes storage_source"),
    ],
)
def test_a_wrong_build_is_refused_at_once(
    builds: Builds, changes: dict[str, Any], text: str
) -> None:
    assert refused(builds, **changes).startswith(text)


def test_the_api_must_be_enabled(builds: Builds) -> None:
    from localgcp.inventory.store import SERVICE

    builds.cloud.store.delete(SERVICE, f"{PROJECT}/cloudbuild.googleapis.com")
    with pytest.raises(GoogleAPICallError, match="Cloud Build API has not been used in project"):
        start(builds)


def test_where_no_engine_is_a_build_fails_with_a_plain_line(
    make_builds: Callable[..., Builds], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    builds = make_builds(program=runner.installed_builder())
    build = ended(builds, start(builds))
    assert build.status.name == "FAILURE"
    assert "no engine builds images here. Hint: install one of docker" in log(builds, build)


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


def test_builds_are_listed_by_tag_and_state_newest_first(builds: Builds) -> None:
    first = start(builds, tags=["a", "b"])
    second = start(builds, tags=["b"])
    for build in (first, second):
        ended(builds, build)

    def found(filter_: str) -> list[str]:
        asked = {"parent": builds.parent, "project_id": PROJECT, "filter": filter_, "page_size": 1}
        return [build.id for build in builds.client.list_builds(asked)]

    assert found('tags="b" AND status="SUCCESS"') == [second.id, first.id]
    assert found('tags="a"') == [first.id]
    assert found('status="WORKING"') == []
    with pytest.raises(GoogleAPICallError, match="invalid filter"):
        found("tags:a")
    asked = {"parent": f"projects/{PROJECT}/locations/europe-west4", "project_id": PROJECT}
    assert not list(builds.client.list_builds(asked))


@pytest.mark.parametrize("name", ["none", "../../cloud", "%2e%2e"])
def test_a_build_that_is_not_there_is_not_found(builds: Builds, name: str) -> None:
    with pytest.raises(GoogleAPICallError):
        builds.client.get_build(
            {"name": f"{builds.parent}/builds/{name}", "project_id": PROJECT, "id": name}
        )


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
