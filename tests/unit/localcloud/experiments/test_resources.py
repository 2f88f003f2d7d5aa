"""Resources of experiments by their service alone: names, ids, etags, masks, order and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.access import gate
from localgcp.access.guests import Guest
from localgcp.errors import ApiError
from localgcp.experiments import collections
from localgcp.experiments.metadata import ARTIFACTS, CONTEXTS, EXECUTIONS, STORES, MetadataService
from localgcp.experiments.records import ExperimentTable
from localgcp.experiments.tensorboards import RUNS, SERIES, TensorboardService
from localgcp.inventory.store import SERVICE, Binding, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
GIVEN = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{NUMBER}/locations/us-central1"
BOX = f"{PLACE}/metadataStores/default"


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


class Served:
    """Both services over one file; each call comes at the next second."""

    def __init__(self, path: Path) -> None:
        self.store, self.table = Store(path), ExperimentTable(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        jobs = JobService(self.store, JobTable(path), _NoScheduler())
        self.metadata = MetadataService(jobs, self.table)
        self.boards = TensorboardService(jobs, self.table)
        self.metadata.create(STORES, GIVEN, vertex.MetadataStore(), "default", None)

    def artifact(self, id_: str = "", **body: Any) -> Any:
        return self.metadata.create(ARTIFACTS, BOX, vertex.Artifact(body), id_, None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seconds of the minute that have passed."""
    seconds = [0]

    def now() -> str:
        seconds[0] += 1
        return f"2026-01-02T03:04:{seconds[0]:02}.000000Z"

    monkeypatch.setattr(collections, "now", now)
    return seconds


@pytest.fixture
def served(tmp_path: Path, clock: list[int], monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(gate, "guest_behind", lambda _context: None)
    return Served(tmp_path / "cloud.sqlite")


def refused(call: Any, *args: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args)
    return error.value.code.name, error.value.message


@pytest.mark.parametrize(
    ("parent", "id_", "code", "text"),
    [
        (BOX, "Upper", "INVALID_ARGUMENT",
         "Invalid artifact_id: 'Upper'; valid ids are [a-z0-9-]{1,128}."),
        (BOX, "a", "ALREADY_EXISTS", f"Artifact {BOX}/artifacts/a already exists."),
        (f"{PLACE}/metadataStores/none", "b", "NOT_FOUND",
         f"The MetadataStore does not exist: {PLACE}/metadataStores/none"),
        (f"{PLACE}/tensorboards/1", "b", "INVALID_ARGUMENT",
         f"Invalid resource name: '{PLACE}/tensorboards/1'."),
        ("default", "b", "INVALID_ARGUMENT", "Invalid resource name: 'default'."),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(
    served: Served, parent: str, id_: str, code: str, text: str
) -> None:
    served.artifact("a")
    artifact = vertex.Artifact()
    found = refused(served.metadata.create, ARTIFACTS, parent, artifact, id_, None)
    assert found == (code, text)


def test_a_name_of_another_kind_or_of_none_is_refused(served: Served) -> None:
    find = served.metadata.find
    assert refused(find, ARTIFACTS, f"{BOX}/contexts/a", None) == (
        "INVALID_ARGUMENT",
        f"Invalid resource name: '{BOX}/contexts/a'; expected a Artifact.",
    )
    assert refused(find, CONTEXTS, f"{BOX}/contexts/a", None) == (
        "NOT_FOUND", f"The Context does not exist: {BOX}/contexts/a",
    )  # fmt: skip


def update(served: Served, mask: list[str], **body: Any) -> Any:
    sent = vertex.Artifact({"name": f"{BOX}/artifacts/a", **body})
    return served.metadata.update(ARTIFACTS, sent, mask, None)


def test_the_fields_of_a_mask_change_and_no_other(served: Served) -> None:
    made = served.artifact("a", display_name="d", uri="gs://a", labels={"k": "v"})
    changed = update(served, ["display_name", "labels.k"], display_name="e", uri="gs://b")
    assert changed == {
        "name": made["name"],
        "uri": "gs://a",
        "displayName": "e",
        "createTime": made["createTime"],
        "updateTime": "2026-01-02T03:04:03.000000Z",
        "etag": "20260102030403000000",
    }
    assert served.table.get(made["name"]) == changed


def test_a_change_of_what_was_changed_meanwhile_is_refused(served: Served) -> None:
    served.artifact("a")
    with pytest.raises(ApiError) as error:
        update(served, ["uri"], etag="1")
    name = f"{BOX}/artifacts/a"
    assert (error.value.code.name, error.value.message) == (
        "ABORTED", f"The etag of {name} is not the current one: it was changed meanwhile.",
    )  # fmt: skip


def names(served: Served, **request: Any) -> tuple[list[str], str]:
    asked = vertex.ListArtifactsRequest(parent=BOX, **request)
    found, token = served.metadata.page(ARTIFACTS, asked, None)
    return [each["displayName"] for each in found], token


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"page_token": "-1"}, "Invalid page token: '-1'."),
        ({"page_token": "1234567890"}, "Invalid page token: '1234567890'."),
        ({"order_by": "display_name up"}, "Invalid order_by: 'display_name up'."),
    ],
)
def test_a_page_that_cannot_be_is_refused(
    served: Served, request_: dict[str, Any], text: str
) -> None:
    asked = vertex.ListArtifactsRequest(parent=BOX, **request_)
    served.artifact()
    assert refused(served.metadata.page, ARTIFACTS, asked, None) == ("INVALID_ARGUMENT", text)


def test_a_filter_reads_fields_and_contexts(served: Served) -> None:
    names_ = {}
    for id_ in ("a", "b"):
        body = vertex.Context(display_name=id_)
        names_[id_] = served.metadata.create(CONTEXTS, BOX, body, id_, None)["name"]
    artifact = served.artifact("x", labels={"k": "v"})
    request = vertex.AddContextArtifactsAndExecutionsRequest(
        context=names_["a"], artifacts=[artifact["name"]]
    )
    added = served.metadata.add_context_artifacts_and_executions(request, None)
    assert added == vertex.AddContextArtifactsAndExecutionsResponse()
    children = vertex.AddContextChildrenRequest(context=names_["a"], child_contexts=[names_["b"]])
    added = served.metadata.add_context_children(children, None)
    assert added == vertex.AddContextChildrenResponse()
    read = served.metadata.read_field
    contexts = {id_: {"name": name} for id_, name in names_.items()}
    assert read(artifact, "in_context") == [names_["a"]]
    assert read(contexts["b"], "parent_contexts") == [names_["a"]]
    assert read(contexts["a"], "child_contexts") == [names_["b"]]
    assert read(contexts["a"], "parent_contexts") == read(contexts["b"], "child_contexts") == []
    assert read({"displayName": "d"}, "display_name") == "d"
    assert read({"isDefault": True}, "is_default") == "true"
    assert read(artifact, "labels.k") == "v"
    assert read(artifact, "labels.k.more") is None
    assert read({}, "uri") is None
    remove = vertex.RemoveContextChildrenRequest(context=names_["a"], child_contexts=[names_["b"]])
    removed = served.metadata.remove_context_children(remove, None)
    assert removed == vertex.RemoveContextChildrenResponse()
    assert read(contexts["b"], "parent_contexts") == []


def test_what_an_execution_took_and_made_is_a_graph(served: Served) -> None:
    context = served.metadata.create(CONTEXTS, BOX, vertex.Context(), "c", None)["name"]
    execution = served.metadata.create(EXECUTIONS, BOX, vertex.Execution(), "e", None)["name"]
    inputs, alone = (served.artifact(id_)["name"] for id_ in ("in", "alone"))
    event = vertex.Event(artifact=inputs, type_="INPUT", labels={"k": "v"})
    noted = served.metadata.add_execution_events(
        vertex.AddExecutionEventsRequest(execution=execution, events=[event]), None
    )
    assert noted == vertex.AddExecutionEventsResponse()
    # Another execution in another context is part of neither graph.
    other = served.metadata.create(EXECUTIONS, BOX, vertex.Execution(), "f", None)["name"]
    apart = served.metadata.create(CONTEXTS, BOX, vertex.Context(), "d", None)["name"]
    served.metadata.add_execution_events(
        vertex.AddExecutionEventsRequest(execution=other, events=[event]), None
    )
    served.metadata.add_context_artifacts_and_executions(
        vertex.AddContextArtifactsAndExecutionsRequest(context=apart, executions=[other]), None
    )
    graph = served.metadata.query_execution_inputs_and_outputs(
        vertex.QueryExecutionInputsAndOutputsRequest(execution=execution), None
    )
    assert [each.name for each in graph.artifacts] == [inputs]
    assert [each.name for each in graph.executions] == [execution]
    [found] = graph.events
    assert (found.artifact, found.execution, found.type_.name, dict(found.labels)) == (
        inputs, execution, "INPUT", {"k": "v"},
    )  # fmt: skip
    assert found.event_time
    served.metadata.add_context_artifacts_and_executions(
        vertex.AddContextArtifactsAndExecutionsRequest(
            context=context, artifacts=[alone], executions=[execution]
        ),
        None,
    )
    whole = served.metadata.query_context_lineage_subgraph(
        vertex.QueryContextLineageSubgraphRequest(context=context), None
    )
    assert [each.name for each in whole.artifacts] == [alone, inputs]
    assert [each.name for each in whole.executions] == [execution]
    assert list(whole.events) == [found]


def board(served: Served) -> str:
    made = served.boards.create(
        collections_of(served)[0], GIVEN, vertex.Tensorboard(display_name="b"), "", None
    )
    return made["name"]


def collections_of(served: Served) -> Any:
    return collections.collections_of(served.boards)


def run_of(served: Served) -> str:
    experiments = collections_of(served)[1]
    sent = vertex.TensorboardExperiment()
    experiment = served.boards.create(experiments, board(served), sent, "exp", None)["name"]
    sent = vertex.TensorboardRun(display_name="one")
    return served.boards.create(RUNS, experiment, sent, "one", None)["name"]


def test_runs_and_time_series_have_names_that_no_other_has(served: Served) -> None:
    run = run_of(served)
    experiment = run.rpartition("/runs/")[0]
    sent = vertex.TensorboardRun(display_name="one")
    assert refused(served.boards.create, RUNS, experiment, sent, "two", None) == (
        "ALREADY_EXISTS", "TensorboardRun with display name one already exists.",
    )  # fmt: skip
    served.boards.create(SERIES, run, vertex.TensorboardTimeSeries(display_name="one"), "", None)
    again = vertex.TensorboardTimeSeries(display_name="one")
    assert refused(served.boards.create, SERIES, run, again, "", None) == (
        "ALREADY_EXISTS", "TensorboardTimeSeries with display name one already exists.",
    )  # fmt: skip


def read(served: Served, name: str, most: int = 0) -> list[int]:
    request = vertex.ReadTensorboardTimeSeriesDataRequest(
        tensorboard_time_series=name, max_data_points=most
    )
    answer = served.boards.read_tensorboard_time_series_data(request, None).time_series_data
    assert answer.tensorboard_time_series_id == name.rpartition("/")[2]
    assert answer.value_type.name == "SCALAR"
    return [point.step for point in answer.values]


def test_points_are_kept_by_step_and_read_evenly(served: Served) -> None:
    run = run_of(served)
    sent = vertex.TensorboardTimeSeries(display_name="loss", value_type="SCALAR")
    series = served.boards.create(SERIES, run, sent, "7", None)["name"]
    points = [{"step": step, "scalar": {"value": step}} for step in range(10)]
    data = {"tensorboard_time_series_id": "7", "value_type": "SCALAR", "values": points}
    write = vertex.WriteTensorboardRunDataRequest(tensorboard_run=run, time_series_data=[data])
    served.boards.write_tensorboard_run_data(write, None)
    assert read(served, series) == read(served, series, -1) == list(range(10))
    assert read(served, series, 10) == list(range(10))
    assert read(served, series, 5) == [1, 3, 5, 7, 9]
    assert read(served, series, 1) == [9]
    both = vertex.BatchReadTensorboardTimeSeriesDataRequest(time_series=[series])
    [one] = served.boards.batch_read_tensorboard_time_series_data(both, None).time_series_data
    assert [point.scalar.value for point in one.values] == list(range(10))


def test_points_of_no_series_and_blobs_are_refused(served: Served) -> None:
    run = run_of(served)

    def write(**data: Any) -> tuple[str, str]:
        request = vertex.WriteTensorboardRunDataRequest(
            tensorboard_run=run, time_series_data=[{"tensorboard_time_series_id": "7", **data}]
        )
        several = vertex.WriteTensorboardExperimentDataRequest(write_run_data_requests=[request])
        return refused(served.boards.write_tensorboard_experiment_data, several, None)

    name = f"{run}/timeSeries/7"
    assert write() == ("NOT_FOUND", f"The TensorboardTimeSeries does not exist: {name}")
    served.boards.create(SERIES, run, vertex.TensorboardTimeSeries(display_name="x"), "7", None)
    assert write(value_type="BLOB_SEQUENCE") == (
        "INVALID_ARGUMENT", "BLOB_SEQUENCE: the local cloud keeps scalars and tensors.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("roles/aiplatform.user", True),
        ("roles/aiplatform.admin", True),
        ("roles/editor", True),
        ("roles/owner", True),
        ("roles/aiplatform.viewer", False),
    ],
)
def test_a_job_needs_a_role_on_the_project(
    served: Served, monkeypatch: pytest.MonkeyPatch, role: str, may: bool
) -> None:
    guest = Guest("trainer@x")
    monkeypatch.setattr(gate, "guest_behind", lambda _context: guest)
    resource = f"projects/{PROJECT}"
    etag = served.store.policy(resource).etag
    bindings = (Binding(role, ("serviceAccount:trainer@x",)),)
    served.store.set_policy(resource, bindings, expected_etag=etag)
    if may:
        assert served.metadata.find(STORES, BOX, None)["name"] == BOX
    else:
        assert refused(served.metadata.find, STORES, BOX, None) == (
            "PERMISSION_DENIED",
            f"Permission denied on resource '{BOX}' (or it may not exist). "
            "The job runs as trainer@x.",
        )
