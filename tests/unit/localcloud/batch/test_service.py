"""Batch by the official client: names, requests, states, lists, and what is refused."""

from __future__ import annotations

import grpc
import pytest
from google.api_core import exceptions

from localgcp.inventory.store import SERVICE
from localgcp.projects import local_project_number
from tests.unit.localcloud.batch.conftest import Jobs, State, a_uuid, job, python
from tests.unit.localcloud.conftest import OFTEN, PARENT, PROJECT

QUICK = job(python("print('hello')"))
SLOW = job(python("import time; time.sleep(60)"))
PLACE = f"projects/{local_project_number(PROJECT)}/locations/us-central1"


def test_a_name_is_used_once_also_after_the_end_until_google_deletes_the_job(jobs: Jobs):
    made = jobs.run(QUICK, "once")
    for _ in range(2):
        with pytest.raises(exceptions.AlreadyExists, match=f'"{PLACE}/jobs/once" already exists'):
            jobs.create(SLOW, "once")
    assert jobs.client.get_job(name=made.name).uid == made.uid
    jobs.advance(days=59.9)
    assert jobs.client.get_job(name=made.name).uid == made.uid
    jobs.advance(days=0.2)
    with pytest.raises(exceptions.NotFound):
        jobs.client.get_job(name=made.name)
    assert not (jobs.cloud.home.batch / made.uid).exists()
    assert jobs.create(QUICK, "once").uid != made.uid


def test_a_request_is_carried_out_once_within_the_hour(jobs: Jobs):
    id_ = a_uuid()
    made = jobs.create(QUICK, "asked", id_)
    assert jobs.create(QUICK, "asked", id_).uid == made.uid
    unnamed = jobs.create(QUICK, request_id=a_uuid())
    assert unnamed.uid != made.uid
    with pytest.raises(exceptions.InvalidArgument, match="another request"):
        jobs.create(SLOW, "asked", id_)
    jobs.client.delete_job(name=made.name).result(timeout=20, polling=OFTEN)
    other = jobs.create(SLOW, "asked")
    assert jobs.create(QUICK, "asked", id_).uid == made.uid != other.uid
    jobs.advance(minutes=61)
    with pytest.raises(exceptions.AlreadyExists):
        jobs.create(QUICK, "asked", id_)


def test_cancelling_ends_the_processes_and_a_second_time_changes_nothing(jobs: Jobs):
    made = jobs.create(SLOW, "slow")
    jobs.reaches(made.name, State.RUNNING)
    first = jobs.client.cancel_job(name=made.name)
    again = jobs.client.cancel_job(name=made.name)
    assert first.operation.name == again.operation.name
    first.result(timeout=20, polling=OFTEN)
    ended = jobs.client.get_job(name=made.name)
    assert ended.status.state is State.CANCELLED
    with pytest.raises(exceptions.FailedPrecondition, match="in state CANCELLED"):
        jobs.client.cancel_job(name=made.name)
    with pytest.raises(exceptions.AlreadyExists):
        jobs.create(QUICK, "slow")


def test_deleting_a_job_that_runs_ends_it_and_frees_its_name(jobs: Jobs):
    made = jobs.create(SLOW, "deleted")
    jobs.reaches(made.name, State.RUNNING)
    first = jobs.client.delete_job(name=made.name)
    again = jobs.client.delete_job(name=made.name)
    assert first.operation.name == again.operation.name
    first.result(timeout=20, polling=OFTEN)
    assert jobs.run(QUICK, "deleted").status.state is State.SUCCEEDED


def test_lists_filter_order_and_page(make_jobs):
    jobs = make_jobs(start=False)
    names = [jobs.create({**QUICK, "labels": {"n": n}}, f"job-{n}").name for n in "abc"]
    jobs.client.cancel_job(name=names[1]).result(timeout=5, polling=OFTEN)

    def listed(**more: object) -> list[str]:
        request = {"parent": PARENT, **more}
        return [each.name[-1] for each in jobs.client.list_jobs(request)]

    assert listed() == ["c", "b", "a"]
    assert listed(order_by="name") == ["a", "b", "c"]
    assert listed(filter="labels.n=b OR labels.n=a", order_by="create_time desc") == ["b", "a"]
    assert listed(filter='status.state="CANCELLED"') == ["b"]
    assert listed(page_size=1) == ["c", "b", "a"]
    assert listed(parent=PARENT.replace("us-central1", "-")) == ["c", "b", "a"]
    assert listed(parent=PARENT.replace("us-central1", "us-west1")) == []
    token = jobs.client.list_jobs({"parent": PARENT, "page_size": 1}).next_page_token
    assert not jobs.client.list_jobs({"parent": PARENT, "page_size": 3}).next_page_token
    for bad in ({"page_token": token, "filter": "state=QUEUED"}, {"page_token": "x"},
                {"order_by": "uid"}, {"filter": "owner=me"}, {"page_size": -1}):  # fmt: skip
        with pytest.raises(exceptions.InvalidArgument):
            listed(**bad)


def changed(path: str, value: object) -> object:
    """``QUICK`` with another value at a path of keys and indices."""
    import copy

    made = copy.deepcopy(QUICK)
    place = made
    *above, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    for part in above:
        place = place[part] if not isinstance(place, dict) else place.setdefault(part, {})
    place[last] = value
    return made


SPEC = "task_groups/0/task_spec"
POLICY = "allocation_policy/instances/0/policy"


REFUSED = [
    ("task_groups", [], "Exactly one task group"),
    ("task_groups", QUICK["task_groups"] * 2, "Exactly one task group"),
    ("priority", 100, "priority"),
    ("labels", {"Team": "x"}, "not valid"),
    ("labels", {"goog-x": "x"}, "reserved"),
    ("labels", {f"k{n}": "v" for n in range(65)}, "64 labels"),
    ("task_groups/0/task_count", 100_001, "100000"),
    ("task_groups/0/task_count", -1, "task_count"),
    ("task_groups/0/parallelism", 5_001, "5000"),
    (f"{SPEC}/runnables", [], "At least one runnable"),
    (f"{SPEC}/runnables", [{}], "One of container, script and barrier"),
    (f"{SPEC}/runnables", [{"script": {}}], "One of text and path"),
    (f"{SPEC}/runnables", [{"container": {}}], "image_uri"),
    (f"{SPEC}/runnables", [{"barrier": {}, "always_run": True}], "barrier"),
    (f"{SPEC}/max_retry_count", 11, r"\[0, 10\]"),
    (f"{SPEC}/max_retry_count", -1, r"\[0, 10\]"),
    (f"{SPEC}/max_run_duration", {"seconds": -1}, "positive"),
    (f"{SPEC}/lifecycle_policies", [{"action": 1}] * 2, "Only one lifecycle policy"),
    (f"{SPEC}/lifecycle_policies", [{"action": 1}], "exit_codes"),
    (f"{SPEC}/compute_resource", {"cpu_milli": -5}, "cpu_milli"),
    (f"{SPEC}/environment", {"variables": {"a b": "x"}}, "no variable"),
    (f"{SPEC}/environment", {"secret_variables": {"A": "secret"}}, "projects/P/secrets"),
    (f"{SPEC}/volumes", [{"gcs": {"remote_path": "b-1/../c"}, "mount_path": "/x"}], "FOLDER"),
    (f"{SPEC}/volumes", [{"gcs": {"remote_path": "b-1"}, "mount_path": "x"}], "absolute"),
    (f"{SPEC}/volumes", [{"gcs": {"remote_path": "b-1"}, "mount_path": "/a/../b"}], "absolute"),
    (f"{SPEC}/volumes", [{"mount_path": "/x"}], "One of gcs"),
    ("allocation_policy/location", {"allowed_locations": ["regions/us-west1"]}, "us-central1"),
    ("allocation_policy/location", {"allowed_locations": ["zones/us-west1-a"]}, "us-central1"),
    ("allocation_policy/instances", QUICK["allocation_policy"]["instances"] * 2, "Only one"),
    (f"{POLICY}/accelerators", [{"type_": "nvidia-l4"}], "count"),
    (f"{POLICY}/provisioning_model", 4, "RESERVATION_BOUND needs"),
    ("logs_policy", {"destination": 2}, "logs_path"),
]


def test_what_batch_does_not_take_is_refused(make_jobs):
    jobs = make_jobs(start=False)
    for path, value, said in REFUSED:
        with pytest.raises(exceptions.InvalidArgument, match=said):
            jobs.create(changed(path, value))
    assert not [*jobs.client.list_jobs(parent=PARENT)]


def test_names_and_ids_of_requests_that_are_none_are_refused(make_jobs):
    jobs = make_jobs(start=False)
    for bad in ("A", "1a", "a-", "a" * 64, "a/b", "../x", "a_b", "a\nb", "ä"):
        with pytest.raises(exceptions.InvalidArgument, match="job_id"):
            jobs.create(QUICK, bad)
    for bad in ("x", "00000000-0000-0000-0000-000000000000", a_uuid().replace("-", "")):
        with pytest.raises(exceptions.InvalidArgument, match="request_id"):
            jobs.create(QUICK, "a", bad)


def test_projects_accounts_apis_and_sizes_are_checked_before_anything_else(make_jobs):
    jobs = make_jobs(start=False)
    request = {"parent": PARENT, "job": QUICK}
    for parent, error in (
        ("projects/somebody/locations/us-central1", exceptions.PermissionDenied),
        ("projects/local-other/locations/us-central1", exceptions.PermissionDenied),
        (f"projects/{PROJECT}/locations/moon", exceptions.InvalidArgument),
        (f"projects/{PROJECT}/locations/../x", exceptions.InvalidArgument),
    ):
        with pytest.raises(error):
            jobs.client.create_job({**request, "parent": parent})
    foreign = {**QUICK, "allocation_policy": {"service_account": {"email": "who@x.com"}}}
    with pytest.raises(exceptions.PermissionDenied, match="act as"):
        jobs.create(foreign)
    huge = job({"script": {"text": "#" * (1 << 20)}})
    with pytest.raises(exceptions.InvalidArgument, match="1 MiB"):
        jobs.create(huge)
    for name in (f"{PARENT}/jobs/none", f"{PARENT}/jobs/%2e%2e"):
        with pytest.raises(exceptions.NotFound):
            jobs.client.get_job(name=name)
    with pytest.raises(exceptions.InvalidArgument):
        jobs.client.get_job(name=f"{PARENT}/jobs/a/b")
    jobs.cloud.store.delete(SERVICE, f"{PROJECT}/batch.googleapis.com")
    with pytest.raises(exceptions.PermissionDenied, match="Batch API has not been used"):
        jobs.create(QUICK)


def test_logs_are_in_cloud_logging_if_the_job_asks_and_its_account_may(jobs: Jobs):
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import (
        LoggingServiceV2GrpcTransport,
    )

    loud = jobs.run(job(python("print('heard')"), python("raise SystemExit(1)")))
    silent = jobs.run({**QUICK, "logs_policy": {}})
    channel = grpc.insecure_channel(jobs.address)
    client = LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))

    def read(text: str) -> list[str]:
        found = client.list_log_entries({"resource_names": [f"projects/{PROJECT}"], "filter": text})
        return [entry.text_payload for entry in found]

    task_logs = f'logName="projects/{PROJECT}/logs/batch_task_logs" AND labels.job_uid='
    assert read(task_logs + loud.uid) == ["heard"]
    assert read(task_logs + silent.uid) == []
    agent = f'resource.type="batch.googleapis.com/Job" AND labels.job_uid="{loud.uid}"'
    assert any("exited with status 1" in line for line in read(agent))
    place = f"projects/{PROJECT}"
    jobs.cloud.store.set_policy(place, (), expected_etag=jobs.cloud.store.policy(place).etag)
    assert read(task_logs + loud.uid) == []
    channel.close()
