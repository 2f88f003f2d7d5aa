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


@pytest.fixture
def run(boards: vertex.TensorboardServiceClient) -> str:
    """A run of an experiment of a TensorBoard."""
    made: Any = boards.create_tensorboard(
        {"parent": PLACE, "tensorboard": {"display_name": "curves"}}
    )
    experiment = boards.create_tensorboard_experiment(
        {"parent": made.result(polling=OFTEN).name, "tensorboard_experiment_id": "exp"}
    )
    request = {"parent": experiment.name, "tensorboard_run_id": "one"}
    request["tensorboard_run"] = {"display_name": "one"}  # pyright: ignore[reportArgumentType]
    return boards.create_tensorboard_run(request).name


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


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ('schema_title="system.Model"', ["b", "a"]),
        ('display_name="b" OR display_name="c"', ["c", "b"]),
        ('NOT schema_title="system.Model"', ["c"]),
        ('in_context("{context}")', ["c", "a"]),
        ('in_context("{context}") AND schema_title="system.Model"', ["a"]),
        ("labels.team=vision", ["a"]),
        ("", ["c", "b", "a"]),
    ],
)
def test_artifacts_are_listed_by_filter_newest_first(
    metadata: vertex.MetadataServiceClient, box: str, filter_: str, found: list[str]
) -> None:
    context = metadata.create_context({"parent": box, "context": {"display_name": "x"}}).name
    names = {}
    for name, title in (("a", "system.Model"), ("b", "system.Model"), ("c", "system.Dataset")):
        labels = {"team": "vision"} if name == "a" else {}
        body = {"display_name": name, "schema_title": title, "labels": labels}
        names[name] = metadata.create_artifact({"parent": box, "artifact": body}).name
    metadata.add_context_artifacts_and_executions(
        context=context, artifacts=[names["a"], names["c"]]
    )
    request = {"parent": box, "filter": filter_.format(context=context), "page_size": 1}
    assert [each.display_name for each in metadata.list_artifacts(request)] == found


def test_a_bad_filter_says_where(metadata: vertex.MetadataServiceClient, box: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="unknown field 'colour'"):
        metadata.list_contexts({"parent": box, "filter": 'colour="red"'})
    with pytest.raises(exceptions.InvalidArgument, match="Invalid filter"):
        metadata.list_contexts({"parent": box, "filter": 'in_context("a"'})


def test_an_update_by_an_old_etag_is_refused(
    metadata: vertex.MetadataServiceClient, box: str
) -> None:
    made = metadata.create_context(
        {"parent": box, "context": {"display_name": "x"}, "context_id": "ctx1"}
    )
    both = [metadata.get_context(name=made.name) for _ in range(2)]
    both[0].metadata = {"a": 1}  # pyright: ignore[reportAttributeAccessIssue]
    kept = metadata.update_context({"context": both[0]})
    assert dict(kept.metadata) == {"a": 1}
    assert kept.create_time == made.create_time
    both[1].metadata = {"b": 2}  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(exceptions.Aborted, match="etag"):
        metadata.update_context({"context": both[1]})


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


def test_points_are_written_all_or_none_and_read_thinned_with_the_newest(
    boards: vertex.TensorboardServiceClient, run: str
) -> None:
    series = boards.create_tensorboard_time_series(
        {"parent": run, "tensorboard_time_series": {"display_name": "loss", "value_type": "SCALAR"}}
    )
    with pytest.raises(exceptions.AlreadyExists):
        boards.create_tensorboard_time_series(
            {
                "parent": run,
                "tensorboard_time_series": {"display_name": "loss", "value_type": "SCALAR"},
            }
        )
    points = [{"step": step, "scalar": {"value": step / 2}} for step in range(10)]
    good = {"tensorboard_time_series_id": series.name.rpartition("/")[2], "values": points}
    bad = {**good, "tensorboard_time_series_id": "404"}
    with pytest.raises(exceptions.NotFound):
        boards.write_tensorboard_run_data({"tensorboard_run": run, "time_series_data": [good, bad]})
    read = {"tensorboard_time_series": series.name}
    assert not boards.read_tensorboard_time_series_data(read).time_series_data.values
    boards.write_tensorboard_run_data({"tensorboard_run": run, "time_series_data": [good]})
    for most, steps in ((0, [*range(10)]), (-1, [*range(10)]), (3, [2, 5, 9])):
        data = boards.read_tensorboard_time_series_data({**read, "max_data_points": most})
        assert [each.step for each in data.time_series_data.values] == steps
    tensorboard = "/".join(run.split("/")[:6])
    boards.delete_tensorboard(name=tensorboard).result(polling=OFTEN)
    with pytest.raises(exceptions.NotFound):
        boards.get_tensorboard_time_series(name=series.name)


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
