"""In a local project the stand-in creates, refuses and forgets as Google Cloud would."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from localgcp.inventory.store import Store, project_number
from tests.unit.localcloud.gcp.harness import Plugin, row_named

SERVICE = "gcp:projects/service:Service"
IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"
PROJECT_GRANT = "gcp:projects/iAMMember:IAMMember"
ACCOUNT = "gcp:serviceaccount/account:Account"
SECRET = "gcp:secretmanager/secret:Secret"

NUMBER = project_number("local-p1")
MEMBER = "serviceAccount:vertex-trainer@local-p1.iam.gserviceaccount.com"


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
