"""Tests that a replacement is checked for refusals before the running job is cancelled (real
engine).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localgcp.inventory.store import ACCOUNT, Store
from tests.e2e import only_jobs
from tests.e2e.only_jobs import CONTROL, PROJECT, REGION, Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EMAIL = f"trainer@{PROJECT}.iam.gserviceaccount.com"
BUSY = {"script": "exec sleep 600", "spec": {"serviceAccount": EMAIL}}
RESERVED = {
    "reservationAffinity": {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [f"projects/{PROJECT}/zones/us-central1-a/reservations/t4"],
    }
}
T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 4}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with only_jobs.project(tmp_path_factory.mktemp("asked"), only_jobs.REFUSED_SOON) as made:
        store = Store(made.home.database)
        store.put(ACCOUNT, EMAIL, PROJECT, {}, {"email": EMAIL})
        yield made


@pytest.fixture(autouse=True)
def no_fault_is_left(project: Project) -> Iterator[None]:
    yield
    project.vt("local", "fault", "clear")


def refused(project: Project, job: str) -> str:
    """Return the output of `up` for a refused replacement; the previous job continues."""
    told = project.up(code=None)
    assert f"job '{job}' was not replaced" in told, told
    assert "continues" in told
    assert "Nothing was cancelled" in told
    assert "Traceback" not in told
    assert project.live(job) == ["1"]
    assert [each.labels["vt-run"] for each in project.accepted(job)] == ["1"]
    return told


@pytest.mark.nightly
def test_missing_act_as_permission_cancels_no_job(project: Project) -> None:
    project.want(acting=BUSY)
    project.up()
    project.want(acting={**BUSY, "run": 2})
    project.vt("local", "fault", "add", "iam", "deny", "--match", EMAIL, "--times", "0")
    told = refused(project, "acting")
    assert f"{EMAIL} does not exist, or the deploying account lacks" in told
    assert "iam.serviceAccounts.actAs on this account" in told
    assert "add the deploying account to deployers in Pulumi.local.yaml" in told
    assert f"gcloud iam service-accounts add-iam-policy-binding {EMAIL}" in told
    project.vt("local", "fault", "clear")
    project.up()
    assert project.live("acting") == ["2"]


@pytest.mark.nightly
def test_missing_reservation_or_zero_quota_cancels_no_job(project: Project) -> None:
    project.want(needing=BUSY)
    project.up()
    project.want(needing={**BUSY, "run": 2, "machine": {**T4, **RESERVED}})
    told = refused(project, "needing")
    assert "does not exist" in told
    project.want(needing={**BUSY, "run": 2, "machine": T4})
    project.vt("local", "fault", "add", "serviceusage", "deny", "--times", "0")
    for told in (project.pulumi("preview -s local", code=None), project.up(code=None)):
        assert "custom_model_training_nvidia_t4_gpus in us-central1 is lower than 4" in told
        assert "Nothing was cancelled" in told
    assert project.live("needing") == ["1"]


@pytest.mark.nightly
def test_invalid_record_or_missing_bucket_cancels_no_job(project: Project) -> None:
    project.want(recorded=BUSY)
    project.up()
    client = project.storage
    bucket = client.bucket(CONTROL)
    kept = {blob.name: blob.download_as_bytes() for blob in bucket.list_blobs()}
    turn = f"turns/{REGION}/recorded.json"
    bucket.blob(turn).upload_from_string("no record")
    project.want(recorded={**BUSY, "run": 2})
    assert f"gs://{CONTROL}/{turn} is not a valid record of a job's turn" in refused(
        project, "recorded"
    )
    bucket.delete(force=True)
    assert f"gcloud storage restore gs://{CONTROL}#GENERATION" in refused(project, "recorded")
    client.create_bucket(CONTROL)
    for name, content in kept.items():
        bucket.blob(name).upload_from_string(content)
    project.up()
    assert project.live("recorded") == ["2"]


@pytest.mark.nightly
def test_failed_check_is_reported_and_does_not_block(project: Project) -> None:
    project.want(unasked=BUSY)
    project.up()
    project.want(unasked={**BUSY, "run": 2})
    project.vt("local", "fault", "add", "iam", "error", "--code", "503", "--times", "0")
    told = project.up()
    assert f"the permission to act as {EMAIL} was not checked: http://" in told
    assert "returned 503 Service Unavailable" in told
    assert project.live("unasked") == ["2"]


@pytest.mark.nightly
def test_job_removed_from_the_stack_is_always_cancelled(project: Project) -> None:
    project.want(leaving=BUSY)
    project.up()
    project.want()
    project.vt("local", "fault", "add", "iam", "deny", "--times", "0")
    project.up()
    assert project.live("leaving") == []


def test_replacement_of_the_same_run_is_refused_before_cancellation(project: Project) -> None:
    project.want(again=BUSY)
    project.up()
    [urn] = [each["urn"] for each in project.state()["resources"] if "again" in each["urn"]]
    told = project.pulumi(f"up -s local --yes --skip-preview --replace '{urn}'", code=None)
    assert "set run: 2" in told
    assert project.live("again") == ["1"]
