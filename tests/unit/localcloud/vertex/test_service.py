"""The official client against the job service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex

from localgcp.apis.server import Call
from localgcp.inventory.store import TENSORBOARD, project_number
from localgcp.runner.job import STOPPED
from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, Cloud, command_job, wait_until

SLEEP = ("sleep", "600")


@pytest.mark.parametrize("labels", [{"a": "b\n"}, {"a\n": "b"}])
def test_a_newline_ends_no_label(cloud: Cloud, labels: dict[str, str]) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="is not valid"):
        cloud.submit({**command_job("true"), "labels": labels})


def test_a_newline_ends_no_name_of_a_variable(cloud: Cloud) -> None:
    job = command_job("true")
    pool = job["job_spec"]["worker_pool_specs"][0]
    pool["container_spec"]["env"] = [{"name": "A\n", "value": "x"}]
    with pytest.raises(exceptions.InvalidArgument, match="is not a valid C identifier"):
        cloud.submit(job)


def test_a_newline_ends_no_parent_and_no_name_of_a_job(cloud: Cloud) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        cloud.client.create_custom_job(parent=f"{PARENT}\n", custom_job=command_job("true"))
    name = cloud.submit(command_job("true")).name
    with pytest.raises(exceptions.GoogleAPICallError):
        cloud.client.get_custom_job(name=f"{name}\n")


def test_a_job_runs_from_create_to_succeeded_with_its_times(cloud: Cloud) -> None:
    created = cloud.submit({**command_job("true"), "labels": {"request-id": "abc"}})
    assert created.state == vertex.JobState.JOB_STATE_QUEUED
    number = project_number(PROJECT)
    parent, _, job_id = created.name.rpartition("/")
    assert parent == f"projects/{number}/locations/us-central1/customJobs"
    assert len(job_id) == 19

    def succeeded() -> bool:
        return (
            cloud.client.get_custom_job(name=created.name).state
            == vertex.JobState.JOB_STATE_SUCCEEDED
        )

    wait_until(succeeded)
    done = cloud.client.get_custom_job(name=created.name)
    assert created.create_time <= done.start_time <= done.end_time
    assert done.labels == {"request-id": "abc"}
    assert done.error.code == 0


def test_a_job_is_found_by_project_id_and_by_project_number(cloud: Cloud) -> None:
    by_number = cloud.submit(command_job("true")).name
    by_id = by_number.replace(project_number(PROJECT), PROJECT)
    assert cloud.client.get_custom_job(name=by_id).name == by_number


def test_the_whole_spec_comes_back_as_it_was_sent(cloud: Cloud) -> None:
    sent = command_job(
        "true",
        scheduling={"timeout": {"seconds": 90}, "strategy": "SPOT"},
        base_output_directory={"output_uri_prefix": "gs://out/x"},
        enable_web_access=True,
    )
    created = cloud.submit(sent)
    assert created.job_spec == vertex.CustomJob(sent).job_spec


@pytest.mark.parametrize(
    ("parent", "error", "text"),
    [
        (
            "projects/acme/locations/us-central1",
            exceptions.PermissionDenied,
            "resource project acme",
        ),
        ("projects/123/locations/us-central1", exceptions.PermissionDenied, "resource project 123"),
        (f"projects/{PROJECT}/locations/moon", exceptions.InvalidArgument, "Unsupported region"),
        (PROJECT, exceptions.InvalidArgument, "Invalid resource name"),
    ],
)
def test_create_refuses_an_unknown_place(
    cloud: Cloud, parent: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        cloud.client.create_custom_job(parent=parent, custom_job=command_job("true"))


def test_create_refuses_a_time_that_no_document_can_have(cloud: Cloud) -> None:
    job = vertex.CustomJob(command_job("true"))
    vertex.CustomJob.pb(job).job_spec.scheduling.timeout.seconds = 10**12
    with pytest.raises(exceptions.InvalidArgument, match=r"Invalid value: .*[Dd]uration"):
        cloud.client.create_custom_job(parent=PARENT, custom_job=job)
    assert cloud.jobs.list() == []


def test_create_needs_the_api_enabled(cloud: Cloud) -> None:
    parent = "projects/local-other/locations/us-central1"
    with pytest.raises(exceptions.PermissionDenied, match="has not been used in project"):
        cloud.client.create_custom_job(parent=parent, custom_job=command_job("true"))


def test_create_needs_the_service_account(cloud: Cloud) -> None:
    with pytest.raises(exceptions.PermissionDenied, match="act as service_account: nobody@x"):
        cloud.submit(command_job("true", service_account="nobody@x"))


def test_create_needs_the_tensorboard(cloud: Cloud) -> None:
    name = f"{PARENT}/tensorboards/7"
    job = command_job("true", service_account=TRAINER, tensorboard=name)
    with pytest.raises(exceptions.NotFound, match="The Tensorboard does not exist"):
        cloud.submit(job)
    id_ = name.replace(PROJECT, project_number(PROJECT))
    cloud.store.put(TENSORBOARD, id_, PROJECT, {}, {})
    assert cloud.submit(job).job_spec.tensorboard == name


def test_create_lists_all_bad_fields_at_once(cloud: Cloud) -> None:
    pool = {"machine_spec": {"accelerator_type": "NVIDIA_TESLA_T4"}, "container_spec": {}}
    with pytest.raises(exceptions.InvalidArgument) as caught:
        cloud.submit({"job_spec": {"worker_pool_specs": [pool]}})
    text = caught.value.message
    assert text.startswith("List of found errors:\t1.Field: display_name; Message: ")
    assert "job_spec.worker_pool_specs[0].machine_spec.machine_type; Message: " in text
    assert "Both `accelerator_type` and `accelerator_count` should be specified or none." in text
    assert cloud.jobs.list() == []


def test_get_of_an_unknown_job_is_not_found(cloud: Cloud) -> None:
    with pytest.raises(exceptions.NotFound):
        cloud.client.get_custom_job(name=f"{PARENT}/customJobs/1")


def test_list_filters_and_pages_newest_first(cloud: Cloud) -> None:
    names = [
        cloud.submit({**command_job("true"), "labels": {"request-id": f"r{n % 2}"}}).name
        for n in range(5)
    ]
    request: dict[str, Any] = {"parent": PARENT, "filter": "labels.request-id=r0", "page_size": 2}
    pages = list(cloud.client.list_custom_jobs(request=request).pages)
    assert [len(page.custom_jobs) for page in pages] == [2, 1]
    found = [job.name for page in pages for job in page.custom_jobs]
    assert found == [names[4], names[2], names[0]]


def test_a_page_token_serves_only_its_own_query(cloud: Cloud) -> None:
    for _ in range(2):
        cloud.submit(command_job("true"))
    first = next(iter(cloud.client.list_custom_jobs({"parent": PARENT, "page_size": 1}).pages))
    other = {"parent": PARENT, "page_token": first.next_page_token, "filter": "labels.a:*"}
    with pytest.raises(exceptions.InvalidArgument, match="page token"):
        cloud.client.list_custom_jobs(other)


def test_cancel_is_asynchronous_and_may_be_repeated(cloud: Cloud) -> None:
    name = cloud.submit(command_job(*SLEEP)).name
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=name).state == vertex.JobState.JOB_STATE_RUNNING)
    cloud.client.cancel_custom_job(name=name)
    cloud.client.cancel_custom_job(name=name)
    wait_until(lambda: get(name=name).state == vertex.JobState.JOB_STATE_CANCELLED)
    assert get(name=name).error.code == 1
    cloud.client.cancel_custom_job(name=name)
    assert get(name=name).state == vertex.JobState.JOB_STATE_CANCELLED


def test_a_waiting_job_is_cancelled_although_no_slot_is_free(
    make_cloud: Callable[..., Cloud],
) -> None:
    cloud = make_cloud(slots=1)
    first = cloud.submit(command_job(*SLEEP)).name
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=first).state == vertex.JobState.JOB_STATE_RUNNING)
    second = cloud.submit(command_job("true")).name
    assert get(name=second).state == vertex.JobState.JOB_STATE_QUEUED
    cloud.client.cancel_custom_job(name=second)
    wait_until(lambda: get(name=second).state == vertex.JobState.JOB_STATE_CANCELLED)


def test_delete_is_an_operation_that_ends(cloud: Cloud) -> None:
    job = cloud.run(command_job("true"))
    operation = cloud.client.delete_custom_job(name=job.name)
    operation.result(timeout=60)
    polled = cloud.client.get_operation({"name": operation.operation.name})
    assert polled.done
    with pytest.raises(exceptions.NotFound):
        cloud.client.get_custom_job(name=job.name)


def test_a_live_job_cannot_be_deleted(cloud: Cloud) -> None:
    name = cloud.submit(command_job(*SLEEP)).name
    with pytest.raises(exceptions.FailedPrecondition, match="cancel it first"):
        cloud.client.delete_custom_job(name=name)


def test_jobs_outlive_the_server(make_cloud: Callable[..., Cloud]) -> None:
    before = make_cloud(slots=1)
    ended = before.run(command_job("true")).name
    running = before.submit(command_job(*SLEEP)).name
    get = before.client.get_custom_job
    wait_until(lambda: get(name=running).state == vertex.JobState.JOB_STATE_RUNNING)
    waiting = before.submit(command_job("true")).name
    before.scheduler.stop()

    after = make_cloud()
    get = after.client.get_custom_job
    assert get(name=ended).state == vertex.JobState.JOB_STATE_SUCCEEDED
    assert get(name=running).state == vertex.JobState.JOB_STATE_FAILED
    assert get(name=running).error.message == STOPPED
    wait_until(lambda: get(name=waiting).state == vertex.JobState.JOB_STATE_SUCCEEDED)


def test_a_killed_servers_running_job_becomes_failed(make_cloud: Callable[..., Cloud]) -> None:
    before = make_cloud()
    job_id = before.submit(command_job(*SLEEP)).name.rpartition("/")[2]
    wait_until(lambda: (job := before.jobs.get(job_id)) and job.state is JobState.RUNNING)
    make_cloud()
    settled = before.jobs.get(job_id)
    assert settled is not None
    assert (settled.state, settled.error_message) == (JobState.FAILED, STOPPED)


def test_a_hook_sees_each_call_and_may_answer_in_its_place(
    make_cloud: Callable[..., Cloud],
) -> None:
    seen: list[str] = []

    def lose_the_answer(call: Call, proceed: Callable[[], Any]) -> Any:
        response = proceed()
        seen.append(call.method)
        if call.method == "CreateCustomJob":
            raise exceptions_unavailable()
        return response

    cloud = make_cloud(hooks=(lose_the_answer,))
    with pytest.raises(exceptions.ServiceUnavailable):
        cloud.submit(command_job("true"))
    assert len(list(cloud.client.list_custom_jobs(parent=PARENT))) == 1
    assert seen == ["CreateCustomJob", "ListCustomJobs"]


def exceptions_unavailable() -> Exception:
    import grpc

    from localgcp.errors import ApiError

    return ApiError(grpc.StatusCode.UNAVAILABLE, "lost")


def test_forty_jobs_created_at_once_are_forty_jobs(make_cloud: Callable[..., Cloud]) -> None:
    cloud = make_cloud(slots=0)
    job = command_job("true", service_account=TRAINER)
    threads = [threading.Thread(target=cloud.submit, args=(job,)) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({job.job_id for job in cloud.jobs.list()}) == 40
