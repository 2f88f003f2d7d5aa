"""What Cloud Build refuses at once, and what the account of a build may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import NotFound, ServiceUnavailable
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild import checks
from localgcp.errors import ApiError
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE, Store, project_number
from tests.unit.localcloud.conftest import set_grant

PROJECT = "local-training"
EMAIL = f"builder@{PROJECT}.iam.gserviceaccount.com"
HOME = f"projects/{PROJECT}"
REPOSITORY = f"{HOME}/locations/us-central1/repositories/docker"
IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/docker/trainer:v1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(SERVICE, f"{PROJECT}/cloudbuild.googleapis.com", PROJECT, {}, {})
    made.put(ACCOUNT, EMAIL, PROJECT, {}, {"email": EMAIL})
    return made


@pytest.fixture
def access(store: Store) -> checks.BuildAccess:
    return checks.BuildAccess(store, PROJECT, EMAIL)


def told(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call()
    return error.value.code.name, error.value.message


def test_another_parent_is_refused(store: Store) -> None:
    for parent in ("", HOME + "/", f"{HOME}/locations/", f"{HOME}/locations/a/b"):
        assert told(lambda parent=parent: checks.resolve_parent(store, parent)) == (
            "INVALID_ARGUMENT",
            f"invalid parent {parent!r}: projects/P/locations/L is expected",
        )
    for parent in ("projects/ours", "projects/123"):
        assert told(lambda parent=parent: checks.resolve_parent(store, parent)) == (
            "PERMISSION_DENIED",
            "The caller does not have permission. (The local cloud has only projects whose id "
            "begins with 'local-'.)",
        )
    store.delete(SERVICE, f"{PROJECT}/cloudbuild.googleapis.com")
    assert told(lambda: checks.resolve_parent(store, HOME)) == (
        "PERMISSION_DENIED",
        f"Cloud Build API has not been used in project {project_number(PROJECT)} before or it is "
        "disabled. Enable it (cloudbuild.googleapis.com) then retry.",
    )


def build(**given: Any) -> cloudbuild_v1.Build:
    right = {
        "steps": [{"name": "gcr.io/cloud-builders/docker"}],
        "service_account": f"{HOME}/serviceAccounts/{EMAIL}",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
    }
    return cloudbuild_v1.Build(right | given)


LOGS = (
    "if 'build.service_account' is specified, the build must either (a) specify "
    "'build.logs_bucket', (b) use the REGIONAL_USER_OWNED_BUCKET "
    "build.options.default_logs_bucket_behavior option, or (c) use either CLOUD_LOGGING_ONLY / "
    "NONE logging options"
)


@pytest.mark.parametrize(
    "given",
    [
        build(),
        build(tags=["a", "A.b-c_1", "a" * 128]),
        build(substitutions={"_A": "x", "_A_1": "y"}),
        build(images=[IMAGE, IMAGE.removesuffix(":v1")]),
        build(options={"logging": "NONE"}),
        build(options={"logging": "LEGACY"}, logs_bucket="gs://logs"),
    ],
)
def test_a_right_build_runs_as_its_account(store: Store, given: cloudbuild_v1.Build) -> None:
    wanted = checks.BuildAccess(store, PROJECT, EMAIL)
    assert checks.check_build(store, PROJECT, given) == wanted


KEY = "must begin with _ and have capital letters, digits and _ alone"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (build(steps=[]), "invalid build: no build steps defined"),
        (build(tags=["a", "-b"]), "invalid build tag '-b'"),
        (build(tags=["a" * 129]), f"invalid build tag '{'a' * 129}'"),
        (build(tags=["a\n"]), r"invalid build tag 'a\n'"),
        *((build(substitutions={key: "x"}),
           f"invalid value for 'build.substitutions': key {key!r} {KEY}")
          for key in ("A", "_a", "_")),
        (build(images=["python:3.11"]), "invalid image name 'python:3.11'"),
        (build(images=[f"{IMAGE}\n"]), f"invalid image name {IMAGE + chr(10)!r}"),
        (build(service_account=""), "invalid value for 'build.service_account': name an account"),
        (build(service_account=EMAIL),
         "invalid value for 'build.service_account': name an account"),
        (build(options={}), LOGS),
        (build(options={"logging": "GCS_ONLY"}), LOGS),
    ],
)  # fmt: skip
def test_a_wrong_build_is_refused(store: Store, given: cloudbuild_v1.Build, said: str) -> None:
    found = told(lambda: checks.check_build(store, PROJECT, given))
    assert found == ("INVALID_ARGUMENT", said)


def test_a_build_runs_as_an_account_that_there_is(store: Store) -> None:
    account = f"{HOME}/serviceAccounts/who@x"
    found = told(lambda: checks.check_build(store, PROJECT, build(service_account=account)))
    text = f"caller does not have permission to act as service account {account}"
    assert found == ("PERMISSION_DENIED", f"{text} (or it may not exist)")


@pytest.mark.parametrize("place", [HOME, REPOSITORY])
@pytest.mark.parametrize("role", ["writer", "repoAdmin", "admin"])
def test_an_image_is_pushed_with_a_role_on_its_repository_or_on_the_project(
    store: Store, access: checks.BuildAccess, place: str, role: str
) -> None:
    set_grant(store, place, "roles/artifactregistry.reader", EMAIL)
    assert not access.pushes(IMAGE)
    set_grant(store, place, f"roles/artifactregistry.{role}", EMAIL)
    assert access.pushes(IMAGE)
    assert access.pushes(IMAGE.replace("docker/", "others/")) is (place == HOME)
    assert not access.pushes("python:3.11")
    assert not access.reads("source")


NOWHERE = "http://127.0.0.1:9"


def source(bucket: str, name: str) -> cloudbuild_v1.Build:
    return build(source={"storage_source": {"bucket": bucket, "object_": name}})


def test_a_source_is_an_object_that_the_account_reads(
    store: Store, access: checks.BuildAccess
) -> None:
    def find(given: cloudbuild_v1.Build) -> tuple[str, str]:
        return told(lambda: checks.resolve_source(access, given, NOWHERE))

    for given in (build(), source("b-1", ""), source("", "x")):
        assert find(given) == (
            "INVALID_ARGUMENT", "invalid build: the local cloud takes storage_source alone",
        )  # fmt: skip
    failed = "could not resolve source: googleapi: Error"
    assert find(source("b-1", "x.tgz")) == (
        "INVALID_ARGUMENT",
        f"{failed} 404: The specified bucket does not exist: b-1, notFound",
    )
    store.put(BUCKET, "b-1", PROJECT, {}, {"name": "b-1"})
    assert find(source("b-1", "x.tgz")) == (
        "INVALID_ARGUMENT",
        f"{failed} 403: {EMAIL} does not have storage.objects.get access to the Google Cloud "
        "Storage object. Permission 'storage.objects.get' denied on resource b-1/x.tgz, forbidden",
    )


@dataclass
class Blob:
    """An object of Cloud Storage, or why it is not answered."""

    generation: str | None = "7"
    error: Exception | None = None
    asked: list[object] = field(default_factory=list)

    def bucket(self, name: str) -> Blob:
        self.asked.append(name)
        return self

    def blob(self, name: str) -> Blob:
        self.asked.append(name)
        return self

    def reload(self, *, timeout: float) -> None:
        self.asked.append(timeout)
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    ("blob", "generation", "found"),
    [
        (Blob(), 0, 7),
        (Blob(), 7, 7),
        (Blob(None), 0, 0),
        (Blob(), 8, ("INVALID_ARGUMENT", "404: No such object: b-1/x.tgz#8, notFound")),
        (Blob(error=NotFound("x")), 0,
         ("INVALID_ARGUMENT", "404: No such object: b-1/x.tgz, notFound")),
        (Blob(error=ServiceUnavailable("late")), 0, ("UNAVAILABLE", "Cloud Storage: late")),
    ],
)  # fmt: skip
def test_a_source_has_the_generation_that_is_built(
    store: Store,
    access: checks.BuildAccess,
    monkeypatch: pytest.MonkeyPatch,
    blob: Blob,
    generation: int,
    found: Any,
) -> None:
    def client(url: str) -> Blob:
        blob.asked.append(url)
        return blob

    monkeypatch.setattr(checks, "storage_client", client)
    store.put(BUCKET, "b-1", PROJECT, {}, {"name": "b-1"})
    set_grant(store, HOME, "roles/storage.objectViewer", EMAIL)
    given = source("b-1", "x.tgz")
    given.source.storage_source.generation = generation
    if isinstance(found, int):
        assert checks.resolve_source(access, given, NOWHERE) == found
    else:
        code, text = told(lambda: checks.resolve_source(access, given, NOWHERE))
        head = "could not resolve source: googleapi: Error "
        assert (code, text.removeprefix(head)) == found
        assert text.startswith(head) is (code == "INVALID_ARGUMENT")
    assert blob.asked == [NOWHERE, "b-1", "x.tgz", 20]
