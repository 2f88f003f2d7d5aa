"""The official client against the job service."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex

from localgcp.inventory.store import TENSORBOARD, project_number
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, Cloud, command_job

SLEEP = ("sleep", "600")


def test_a_newline_ends_no_parent_and_no_name_of_a_job(cloud: Cloud) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        cloud.client.create_custom_job(parent=f"{PARENT}\n", custom_job=command_job("true"))
    name = cloud.submit(command_job("true")).name
    with pytest.raises(exceptions.GoogleAPICallError):
        cloud.client.get_custom_job(name=f"{name}\n")


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


def test_a_page_token_serves_only_its_own_query(cloud: Cloud) -> None:
    for _ in range(2):
        cloud.submit(command_job("true"))
    first = next(iter(cloud.client.list_custom_jobs({"parent": PARENT, "page_size": 1}).pages))
    other = {"parent": PARENT, "page_token": first.next_page_token, "filter": "labels.a:*"}
    with pytest.raises(exceptions.InvalidArgument, match="page token"):
        cloud.client.list_custom_jobs(other)


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
