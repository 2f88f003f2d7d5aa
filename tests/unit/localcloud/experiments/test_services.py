"""Metadata and TensorBoards through Google's own clients, beside what its SDK asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.metadata_service import transports as metadata_transports
from google.cloud.aiplatform_v1.services.tensorboard_service import transports as board_transports

from localgcp.apis.server import serve
from localgcp.experiments.metadata import MetadataService
from localgcp.experiments.records import ExperimentTable
from localgcp.experiments.tensorboards import TensorboardService
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import OFTEN
from vertex_training.naming import local_project_number

PROJECT = "local-training"
PLACE = f"projects/{PROJECT}/locations/us-central1"
NUMBERED = f"projects/{local_project_number(PROJECT)}/locations/us-central1"


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


@pytest.fixture
def store(home: Home) -> Store:
    made = Store(home.database)
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    return made


@pytest.fixture
def channel(home: Home, store: Store) -> Iterator[grpc.Channel]:
    jobs = JobService(store, JobTable(home.database), _NoScheduler())
    table = ExperimentTable(home.database)
    server = serve([jobs, MetadataService(jobs, table), TensorboardService(jobs, table)], 0)
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield channel
    server.stop(None).wait()


@pytest.fixture
def metadata(channel: grpc.Channel) -> vertex.MetadataServiceClient:
    transport = metadata_transports.MetadataServiceGrpcTransport(channel=channel)
    return vertex.MetadataServiceClient(transport=transport)


@pytest.fixture
def boards(channel: grpc.Channel) -> vertex.TensorboardServiceClient:
    transport = board_transports.TensorboardServiceGrpcTransport(channel=channel)
    return vertex.TensorboardServiceClient(transport=transport)


@pytest.fixture
def box(metadata: vertex.MetadataServiceClient) -> str:
    """A metadata store."""
    made: Any = metadata.create_metadata_store({"parent": PLACE, "metadata_store_id": "default"})
    return made.result(polling=OFTEN).name


def test_names_have_the_projects_number_and_a_missing_store_is_not_found(
    metadata: vertex.MetadataServiceClient,
) -> None:
    with pytest.raises(exceptions.NotFound, match="MetadataStore does not exist"):
        metadata.create_context({"parent": f"{PLACE}/metadataStores/default", "context": {}})
    made: Any = metadata.create_metadata_store({"parent": PLACE, "metadata_store_id": "default"})
    store = made.result(polling=OFTEN).name
    assert store == f"{NUMBERED}/metadataStores/default"
    with pytest.raises(exceptions.AlreadyExists):
        metadata.create_metadata_store({"parent": PLACE, "metadata_store_id": "default"})
    with pytest.raises(exceptions.InvalidArgument, match=r"Invalid context_id: 'a/b'"):
        metadata.create_context({"parent": store, "context": {}, "context_id": "a/b"})


def test_a_bad_filter_says_where(metadata: vertex.MetadataServiceClient, box: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="unknown field 'colour'"):
        metadata.list_contexts({"parent": box, "filter": 'colour="red"'})
    with pytest.raises(exceptions.InvalidArgument, match="Invalid filter"):
        metadata.list_contexts({"parent": box, "filter": 'in_context("a"'})


def test_a_deleted_context_takes_its_links_along(
    metadata: vertex.MetadataServiceClient, box: str
) -> None:
    parent, child = (
        metadata.create_context({"parent": box, "context": {}, "context_id": name}).name
        for name in ("parent", "child")
    )
    metadata.add_context_children(context=parent, child_contexts=[child])
    below = {"parent": box, "filter": f'parent_contexts:"{parent}"'}
    assert [each.name for each in metadata.list_contexts(below)] == [child]
    metadata.delete_context(name=parent).result(polling=OFTEN)
    assert list(metadata.list_contexts(below)) == []
    assert metadata.get_context(name=child).name == child


def test_an_instance_of_a_stack_and_one_of_a_client_are_in_one_list(
    boards: vertex.TensorboardServiceClient, store: Store
) -> None:
    name = f"{NUMBERED}/tensorboards/7"
    values = {"displayName": "of the stack", "createTime": "2026-11-24T00:00:00Z"}
    store.put(
        TENSORBOARD,
        name,
        PROJECT,
        {"displayName": "x"},
        {**values, "effectiveLabels": {}, "runCount": ""},
    )
    for title in ("first", "second"):
        boards.create_tensorboard(
            {"parent": PLACE, "tensorboard": {"display_name": title, "is_default": True}}
        ).result(polling=OFTEN)
    listed = boards.list_tensorboards({"parent": PLACE, "order_by": "create_time"})
    assert [each.display_name for each in listed] == ["of the stack", "first", "second"]
    default = boards.list_tensorboards({"parent": PLACE, "filter": "is_default=true"})
    assert [each.display_name for each in default] == ["second"]
    boards.update_tensorboard(
        {
            "tensorboard": {"name": name, "description": "new"},
            "update_mask": {"paths": ["description"]},
        }
    ).result(polling=OFTEN)
    found = store.get(TENSORBOARD, name)
    assert found is not None
    assert found.inputs == {"displayName": "x"}
    assert (found.outputs["description"], found.outputs["displayName"]) == ("new", "of the stack")
