"""In a local project the stand-in creates, refuses and forgets as Google Cloud would."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from localgcp.gcp.codec import decode, plain
from localgcp.inventory.store import Store, project_number
from tests.unit.localcloud.gcp.harness import Plugin, row_named

SERVICE = "gcp:projects/service:Service"
IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"
PROJECT_GRANT = "gcp:projects/iAMMember:IAMMember"
ACCOUNT = "gcp:serviceaccount/account:Account"
ACCOUNT_GRANT = "gcp:serviceaccount/iAMMember:IAMMember"
SECRET = "gcp:secretmanager/secret:Secret"
SECRET_GRANT = "gcp:secretmanager/secretIamMember:SecretIamMember"
REPOSITORY = "gcp:artifactregistry/repository:Repository"

NUMBER = project_number("local-p1")
MEMBER = "serviceAccount:vertex-trainer@local-p1.iam.gserviceaccount.com"
# Values that are new in every cloud.
RANDOM = {"etag", "uniqueId", "createTime", "updateTime", "__meta"}


@pytest.fixture
def store(local: Plugin, tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.sqlite")


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    """A local project with its APIs on, and what the observed grants refer to."""
    local.enable("iam", "secretmanager", "artifactregistry", "cloudresourcemanager")
    for name in ("trainer", "ci"):
        local.create(ACCOUNT, _moved(row_named(name)["inputs"]))
    return local


@pytest.mark.parametrize(
    "name",
    [
        "api-storage", "aiplatform-agent", "trainer", "ci", "wandb", "images",
        "trainer-aiuser", "trainer-cond", "ci-acts-as-trainer", "wandb-reader",
    ],
)  # fmt: skip
def test_what_is_created_looks_as_observed(ready: Plugin, name: str) -> None:
    row = row_named(name)
    if name in ("trainer", "ci"):
        for made in ("trainer", "ci"):
            id_ = _moved(row_named(made)["id"])
            ready.delete(ACCOUNT, id_, {"email": id_.rpartition("/")[2]})
    for needed in {"wandb-reader": ["wandb"]}.get(name, []):
        other = row_named(needed)
        ready.create(other["type"], _moved(other["inputs"]), needed)

    id_, outputs = ready.create(row["type"], _moved(row["inputs"]), name)

    assert id_ == _moved(row["id"])
    expected = {k: plain(v) for k, v in _moved(row["outputs"]).items()}
    got = plain(outputs)
    assert set(got) - RANDOM == set(expected) - RANDOM
    assert {k: v for k, v in got.items() if k not in RANDOM} == {
        k: v for k, v in expected.items() if k not in RANDOM
    }
    for key in RANDOM & set(expected):
        assert isinstance(got[key], str)
        assert got[key]


def test_nothing_is_created_before_its_api_is_on(local: Plugin) -> None:
    text = _refused(lambda: local.create(SECRET, _secret()))

    assert text.startswith(
        "Error creating Secret: googleapi: Error 403: Secret Manager API has not been used in "
        "project local-p1 before or it is disabled."
    )
    assert text.endswith("SERVICE_DISABLED")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("asked", "stays"),
    [({}, True), ({"disableOnDestroy": False}, True), ({"disableOnDestroy": True}, False)],
)
def test_an_api_goes_with_its_resource_only_where_that_asks_for_it(
    local: Plugin, store: Store, asked: dict[str, bool], stays: bool
) -> None:
    id_, made = local.create(SERVICE, {"service": "iam.googleapis.com", **asked})
    local.delete(SERVICE, id_, made)
    assert store.service_enabled("local-p1", "iam.googleapis.com") == stays


def test_a_service_agent_stays_when_its_resource_goes(local: Plugin, store: Store) -> None:
    id_, made = local.create(IDENTITY, {"service": "aiplatform.googleapis.com"})
    local.delete(IDENTITY, id_, made)
    assert [each.id for each in store.list(IDENTITY)] == [id_]


def test_a_project_that_is_not_local_is_refused_in_one_line(plugin_for: Any) -> None:
    abroad = plugin_for("acme-ml-dev", VT_LOCAL_HOME="/nonexistent")
    calls = [
        lambda: abroad.create(SERVICE, {"service": "iam.googleapis.com"}),
        lambda: abroad.read(SERVICE, "acme-ml-dev/iam.googleapis.com"),
        lambda: abroad.delete(SERVICE, "x", {"project": "acme-ml-dev"}),
        lambda: abroad.update(SERVICE, "x", {}, {"project": "acme-ml-dev"}),
        lambda: abroad.create(PROJECT_GRANT, _grant(project="acme-ml-dev")),
        lambda: abroad.create("gcp:storage/bucket:Bucket", {"location": "US"}),
    ]

    for call in calls:
        text = _refused(call)
        assert text.startswith("project 'acme-ml-dev' is not a local project")
        assert "outside `vt local shell`" in text
        assert "\n" not in text


def test_a_local_project_cannot_reach_into_another_project(ready: Plugin) -> None:
    text = _refused(lambda: ready.create(PROJECT_GRANT, _grant(project="acme-ml-dev")))

    assert text.startswith("project 'acme-ml-dev' is not a local project")


@pytest.mark.parametrize(
    ("token", "inputs", "message"),
    [
        (ACCOUNT, {"accountId": "vertex-trainer"}, "Service account vertex-trainer already exists"),
        (SECRET, {"secretId": "twice", "replication": {"auto": {}}}, "Secret [projects/local-p1"),
        (
            REPOSITORY,
            {"repositoryId": "twice", "format": "DOCKER", "location": "us-central1"},
            "the repository already exists",
        ),
    ],
)
def test_what_exists_cannot_be_created_again(
    ready: Plugin, token: str, inputs: dict[str, Any], message: str
) -> None:
    if token != ACCOUNT:
        ready.create(token, inputs)

    text = _refused(lambda: ready.create(token, inputs))

    assert f"googleapi: Error 409: {message}" in text


@pytest.mark.parametrize(
    ("token", "inputs", "message"),
    [
        (SECRET, {"secretId": "bad id", "replication": {"auto": {}}}, "Error 400: Secret ID"),
        (REPOSITORY, {"repositoryId": "Bad", "format": "DOCKER"}, 'invalid repository id "Bad"'),
        (REPOSITORY, {"repositoryId": "x", "format": "NOPE"}, "unsupported repository format"),
        (
            SECRET_GRANT,
            {"secretId": "none", "role": "roles/viewer", "member": "user:me@example.com"},
            "Error 404: projects/local-p1/secrets/none not found",
        ),
        (
            PROJECT_GRANT,
            {"project": "local-p1", "role": "viewer", "member": "user:me@example.com"},
            "Error 400: Invalid role name: viewer",
        ),
        (
            PROJECT_GRANT,
            {
                "project": "local-p1",
                "role": "roles/viewer",
                "member": "serviceAccount:ghost@local-p1.iam.gserviceaccount.com",
            },
            "Error 400: Service account ghost@local-p1.iam.gserviceaccount.com does not exist.",
        ),
    ],
)
def test_what_the_cloud_refuses_is_refused(
    ready: Plugin, token: str, inputs: dict[str, Any], message: str
) -> None:
    assert message in _refused(lambda: ready.create(token, inputs))


def test_a_service_agent_exists_only_after_its_identity_was_created(ready: Plugin) -> None:
    agent = f"serviceAccount:service-{NUMBER}@gcp-sa-aiplatform.iam.gserviceaccount.com"
    grant = {"project": "local-p1", "role": "roles/viewer", "member": agent}

    assert "does not exist" in _refused(lambda: ready.create(PROJECT_GRANT, grant))
    _, outputs = ready.create(IDENTITY, {"service": "aiplatform.googleapis.com"})
    assert outputs["member"] == agent
    ready.create(PROJECT_GRANT, grant)
    # The agent of custom code comes with it.
    custom_code = agent.replace("aiplatform.", "aiplatform-cc.")
    ready.create(PROJECT_GRANT, grant | {"member": custom_code})


@pytest.mark.parametrize(
    "member",
    [
        "user:ghost@local-p1.iam.gserviceaccount.com",
        "group:ghosts@acme.example",
        "serviceAccount:ghost@acme-ml-prod.iam.gserviceaccount.com",
        "serviceAccount:1-compute@developer.gserviceaccount.com",
        "serviceAccount:service-1@gcp-sa-aiplatform.iam.gserviceaccount.com",
        f"serviceAccount:agent-{NUMBER}@gcp-sa-aiplatform.iam.gserviceaccount.com",
    ],
)
def test_a_member_of_elsewhere_is_not_looked_for(ready: Plugin, member: str) -> None:
    grant = {"project": "local-p1", "role": "roles/viewer", "member": member}
    assert ready.create(PROJECT_GRANT, grant)[1]["member"] == member


@pytest.mark.parametrize(
    ("service", "domain"),
    [
        ("aiplatform", "gcp-sa-aiplatform"),
        ("compute", "compute-system"),
        ("container", "container-engine-robot"),
        ("storage", "gs-project-accounts"),
        ("secretmanager", "gcp-sa-secretmanager"),
    ],
)
def test_a_service_agent_has_the_address_that_google_documents(
    ready: Plugin, service: str, domain: str
) -> None:
    _, outputs = ready.create(IDENTITY, {"service": f"{service}.googleapis.com"})

    email = f"service-{NUMBER}@{domain}.iam.gserviceaccount.com"
    assert (outputs["email"], outputs["member"]) == (email, f"serviceAccount:{email}")


def test_a_grant_is_seen_taken_back_and_gone(ready: Plugin, store: Store) -> None:
    id_, outputs = ready.create(PROJECT_GRANT, _grant())
    assert store.roles("projects/local-p1", MEMBER) == {"roles/viewer"}
    assert ready.read(PROJECT_GRANT, id_).id == id_

    ready.delete(PROJECT_GRANT, id_, outputs)
    ready.delete(PROJECT_GRANT, id_, outputs)

    assert store.roles("projects/local-p1", MEMBER) == set()
    assert ready.read(PROJECT_GRANT, id_).id == ""


def test_an_account_that_is_deleted_takes_its_grants_with_it(ready: Plugin, store: Store) -> None:
    id_, _ = ready.create(PROJECT_GRANT, _grant())
    email = MEMBER.removeprefix("serviceAccount:")

    ready.delete(ACCOUNT, f"projects/local-p1/serviceAccounts/{email}", {"email": email})

    assert store.policies() == {}
    assert ready.read(PROJECT_GRANT, id_).id == ""


def test_two_plugins_granting_at_once_lose_no_grant(
    ready: Plugin, plugin_for: Any, tmp_path: Path, store: Store
) -> None:
    plugins = [ready, plugin_for("local-p1", VT_LOCAL_HOME=str(tmp_path))]
    roles = [f"roles/custom.r{n}" for n in range(24)]

    def grant(numbered: tuple[int, str]) -> None:
        plugins[numbered[0] % 2].create(PROJECT_GRANT, _grant(role=numbered[1]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(grant, enumerate(roles)))

    assert store.roles("projects/local-p1", MEMBER) == set(roles)


def test_an_update_keeps_what_the_service_decided(ready: Plugin) -> None:
    id_, olds = ready.create(SECRET, _secret())
    news = ready.checked(SECRET, "x", {**_secret(), "labels": {"team": "b"}})

    outputs = ready.update(SECRET, id_, news, olds)

    assert plain(outputs["effectiveLabels"]) == {"goog-pulumi-provisioned": "true", "team": "b"}
    assert (outputs["createTime"], outputs["name"]) == (olds["createTime"], olds["name"])
    assert not ready.diff(SECRET, id_, news, outputs).detailedDiff


def test_a_refresh_of_something_gone_returns_no_id(ready: Plugin) -> None:
    id_, olds = ready.create(SECRET, _secret())
    ready.delete(SECRET, id_, olds)
    ready.delete(SECRET, id_, olds)

    assert ready.read(SECRET, id_, properties=olds).id == ""


@pytest.mark.parametrize(
    "written", ["projects/local-p1/secrets/s", f"projects/{NUMBER}/secrets/s", "local-p1/s", "s"]
)
def test_an_import_accepts_the_ids_people_write(ready: Plugin, written: str) -> None:
    ready.create(SECRET, _secret())

    answer = ready.read(SECRET, written)

    assert answer.id == "projects/local-p1/secrets/s"
    assert decode(answer.inputs)["secretId"] == "s"


def test_a_refresh_brings_what_was_changed_elsewhere_into_the_inputs(
    ready: Plugin, store: Store
) -> None:
    id_, olds = ready.create(SECRET, {**_secret(), "labels": {"team": "a"}})
    inputs = ready.checked(SECRET, "x", {**_secret(), "labels": {"team": "a"}})
    kept = store.get(SECRET, id_)
    assert kept is not None
    labels = {"team": "other"}
    store.put(SECRET, id_, kept.project, kept.inputs, {**kept.outputs, "labels": labels})

    answer = ready.read(SECRET, id_, properties=olds, inputs=inputs)

    assert decode(answer.inputs) == {**inputs, "labels": labels}


def test_protected_resources_are_not_deleted(ready: Plugin) -> None:
    guarded = {**_secret(), "deletionProtection": True}
    id_, olds = ready.create(SECRET, guarded)

    assert "deletion_protection=false" in _refused(lambda: ready.delete(SECRET, id_, olds))


def test_an_unknown_type_and_a_data_source_are_one_line_errors(local: Plugin) -> None:
    text = _refused(lambda: local.check("gcp:sql/database:Database", "x", {}))

    assert text.startswith(
        "the stand-in for the gcp plugin does not know the resource type gcp:sql/database:Database:"
    )
    assert "Hint: " in text
    assert "\n" not in text


def _secret() -> dict[str, Any]:
    return {"secretId": "s", "replication": {"auto": {}}}


def _grant(**changes: str) -> dict[str, Any]:
    return {"project": "local-p1", "role": "roles/viewer", "member": MEMBER, **changes}


def _refused(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.details()  # type: ignore[attr-defined]


def _moved(value: Any) -> Any:
    """A value observed in project p1, as it is in local-p1."""
    if isinstance(value, dict):
        return {k: _moved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_moved(v) for v in value]
    if not isinstance(value, str):
        return value
    moved = value.replace("18022562", NUMBER).replace("/p1/", "/local-p1/")
    moved = moved.replace("@p1.", "@local-p1.")
    return "local-p1" + moved[2:] if moved == "p1" or moved.startswith("p1/") else moved
