"""What keeps a job from starting: its account and the buckets that it reads, writes or names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory.store import ACCOUNT, BUCKET, EMPTY_POLICY, Binding, Store
from localgcp.vertex.admission import Access, admit
from localgcp.vertex.records import JobRecord, JobState

TRAINER = "trainer@local-p1.iam.gserviceaccount.com"
MEMBER = f"serviceAccount:{TRAINER}"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two buckets of the project, one of another, one of none; an account without grants."""
    made = Store(tmp_path / "cloud.sqlite")
    for name, project in (("data", "local-p1"), ("out", "local-p1"), ("far", "local-p2")):
        made.put(BUCKET, name, project, {}, {"name": name, "project": project})
    (tmp_path / "storage" / "loose").mkdir(parents=True)
    made.put(ACCOUNT, TRAINER, "local-p1", {}, {"email": TRAINER})
    return made


def grant(store: Store, resource: str, *roles: str, member: str = MEMBER) -> None:
    bindings = tuple(Binding(role, (member,)) for role in roles)
    store.set_policy(resource, bindings, expected_etag=EMPTY_POLICY.etag)


def test_googles_own_account_has_all_buckets_of_its_project_and_those_of_none(store: Store) -> None:
    access = Access(store, "local-p1", None)
    assert [name for name in ("data", "out", "far", "loose", "none") if access.may_read(name)] == [
        "data", "out", "loose"
    ]  # fmt: skip
    assert access.may_change("out")
    assert not access.may_create("far")


def job(output: str = "", account: str | None = TRAINER, **task: Any) -> JobRecord:
    kind = "pythonPackageSpec" if "packageUris" in task else "containerSpec"
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}
    spec: dict[str, Any] = {"workerPoolSpecs": [pool, {**pool, kind: task}]}
    if account:
        spec["serviceAccount"] = account
    if output:
        spec["baseOutputDirectory"] = {"outputUriPrefix": output}
    request = {"displayName": "a job", "jobSpec": spec}
    return JobRecord.new("local-p1", "us-central1", request, JobState.QUEUED)


def refusal(store: Store, record: JobRecord) -> tuple[int, str]:
    with pytest.raises(StartRefusedError) as refused:
        admit(store, record)
    return refused.value.code, refused.value.message


def test_an_account_that_is_not_there_cannot_be_acted_as(store: Store) -> None:
    other = "nobody@local-p1.iam.gserviceaccount.com"
    code, message = refusal(store, job(account=other))
    assert code == RpcCode.PERMISSION_DENIED
    assert message == (
        f"You do not have permission to act as service_account: {other}. (or it may not exist)."
    )


def denied(permission: str, uri: str, role: str, who: str = TRAINER) -> str:
    bucket = uri.removeprefix("gs://").partition("/")[0]
    return (
        f"{who} does not have {permission} access to {uri}. Permission '{permission}' denied on "
        f"resource (or it may not exist). Grant roles/storage.object{role} on bucket {bucket}."
    )


def test_a_package_is_read_before_the_job_starts(store: Store) -> None:
    uri = "gs://data/p/train-1.tar.gz"
    read = (RpcCode.PERMISSION_DENIED, denied("storage.objects.get", uri, "Viewer"))
    assert refusal(store, job(packageUris=[uri])) == read
    grant(store, "b/data", "roles/storage.objectViewer")
    admit(store, job(packageUris=[uri]))
    gone = "gs://none/p.tar.gz"
    assert refusal(store, job(packageUris=[uri, gone])) == (
        RpcCode.NOT_FOUND, f"The specified bucket does not exist: gs://none (in {gone})."
    )  # fmt: skip


def test_output_is_created_before_the_job_starts(store: Store) -> None:
    prefix = "gs://out/runs/1"
    assert refusal(store, job(prefix)) == (
        RpcCode.PERMISSION_DENIED, denied("storage.objects.create", prefix, "User")
    )  # fmt: skip
    grant(store, "b/out", "roles/storage.objectCreator")
    admit(store, job(prefix))
    code, message = refusal(store, job("gs://none/x"))
    assert (code, message) == (
        RpcCode.NOT_FOUND, "The specified bucket does not exist: gs://none (in gs://none/x)."
    )  # fmt: skip
    agent = "the Custom Code Service Agent of project local-p1"
    assert refusal(store, job("gs://far/x", account=None)) == (
        RpcCode.PERMISSION_DENIED, denied("storage.objects.create", "gs://far/x", "User", agent)
    )  # fmt: skip


@pytest.mark.parametrize(
    "task",
    [
        {"command": ["train", "--data=gs://data/a/b"]},
        {"args": ["--in", "gs://data/a/b,gs://none/c"]},
        {"env": [{"name": "NONE"}, {"name": "DATA", "value": "'gs://data/a/b'"}]},
        {"packageUris": [], "args": ["gs://data/a/b"]},
    ],
)
def test_a_bucket_that_a_job_names_is_one_that_it_may_read_or_write(
    store: Store, task: dict[str, Any]
) -> None:
    message = denied("storage.objects.get", "gs://data/a/b", "Viewer")
    assert refusal(store, job(**task)) == (
        RpcCode.PERMISSION_DENIED,
        f"403 for a bucket in the job's arguments or variables: {message}"
    )  # fmt: skip
    grant(store, "b/data", "roles/storage.objectCreator")
    admit(store, job(**task))
