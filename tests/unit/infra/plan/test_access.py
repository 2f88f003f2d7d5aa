"""Who reaches which data: by a grant, or by acting as an account that has one."""

from __future__ import annotations

import pytest

from vertex_training.plan.access import AGENT, Access, Binding, reachable

ANN = "user:ann@example.com"
USER = "roles/iam.serviceAccountUser"
ONE, TWO = (f"{name}@acme-ml-dev.iam.gserviceaccount.com" for name in ("one", "two"))


def reads(member: str, *through: str) -> Access:
    return Access(member, "reads", "bucket", "acme-data", through)


def test_accounts_are_named_in_the_order_of_acting_and_a_circle_ends() -> None:
    bindings = [
        Binding(ANN, USER, "account", f"projects/acme-ml-dev/serviceAccounts/{ONE}"),
        Binding(f"serviceAccount:{ONE}", USER, "account", TWO),
        Binding(f"serviceAccount:{TWO}", USER, "account", ONE),
        Binding(f"serviceAccount:{TWO}", "roles/storage.objectViewer", "bucket", "acme-data"),
    ]
    assert reachable(bindings) == {
        reads(ANN, ONE, TWO),
        reads(f"serviceAccount:{ONE}", TWO),
        reads(f"serviceAccount:{TWO}"),
    }


def test_actor_on_a_project_has_the_access_of_each_account() -> None:
    elsewhere = "three@acme-ml-prod.iam.gserviceaccount.com"
    bindings = [
        Binding(ANN, USER, "project", "projects/acme-ml-dev"),
        Binding(f"serviceAccount:{ONE}", "roles/storage.objectViewer", "bucket", "acme-data"),
        Binding(f"serviceAccount:{elsewhere}", "roles/storage.objectUser", "bucket", "acme-data"),
    ]
    found = {each for each in reachable(bindings) if each.member == ANN}
    assert found == {reads(ANN, ONE)}
    on_bucket = [Binding(ANN, USER, "bucket", "acme-data"), *bindings[1:]]
    assert {each.through for each in reachable(on_bucket) if each.member == ANN} == {()}


KIM = "user:kim@example.com"


def _of_agent(member: str, *through: str) -> set[Access]:
    return {
        Access(member, "writes", f"{data} of project", "acme-ml-dev", (*through, AGENT))
        for data in ("all buckets", "all datasets")
    }


@pytest.mark.parametrize("role", ["roles/aiplatform.user", "roles/aiplatform.admin"])
def test_submitter_has_the_access_of_a_job_without_an_account(role: str) -> None:
    assert reachable([Binding(KIM, role, "project", "acme-ml-dev")]) == _of_agent(KIM)
    assert reachable([Binding(KIM, role, "folder", "1")]) == set()


def test_editor_of_builds_or_deployments_has_the_access_of_their_account() -> None:
    editor = Binding(KIM, "roles/deploymentmanager.editor", "project", "acme-ml-dev")
    [found] = reachable([editor])
    assert (found.verb, found.kind) == ("writes", "everything of project")
    assert found.through == ("Google APIs Service Agent",)
    builder = Binding(KIM, "roles/cloudbuild.builds.editor", "project", "acme-ml-dev")
    assert {(each.kind, each.through) for each in reachable([builder])} == {
        (f"{data} of project", ("Cloud Build's legacy account",))
        for data in ("all buckets", "all repositories")
    }
    job = Binding(KIM, "roles/batch.jobsEditor", "project", "acme-ml-dev")
    assert reachable([job]) == set()
