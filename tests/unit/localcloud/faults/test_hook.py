"""What a fault does to a call on its way, and to an operation that a call began."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.apis.server import Call
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.faults.calls import CallFaults, OperationFaults
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobTable

PARENT = "projects/local-training/locations/us-central1"


class Context:
    """Of a caller that gives up at once, or never."""

    def __init__(self) -> None:
        self.gone: list[Any] = []

    def add_callback(self, callback: Any) -> bool:
        self.gone.append(callback)
        callback()
        return True

    def peer(self) -> str:
        return "unix:"


class Way:
    """Calls through the hook; the service answers each with ``answer``."""

    def __init__(self, folder: Path) -> None:
        self.table, self.stopping = FaultTable(folder / "faults.sqlite"), threading.Event()
        self.jobs = JobTable(folder / "cloud.sqlite")
        self.studies = TuningTable(folder / "cloud.sqlite")
        self.hook = CallFaults(self.table, self.jobs, self.stopping, self.studies)
        self.made = 0
        self.answer: Any = "answer"

    def add(self, kind: str, service: str = "jobs", **given: Any) -> int:
        return self.table.add(Fault.parse(service=service, kind=kind, **given))

    def call(self, method: str, request: Any = None) -> Any:
        def proceed() -> Any:
            self.made += 1
            return self.answer

        context = cast(grpc.ServicerContext, Context())
        return self.hook(Call(method, request, context), proceed)

    def refusal(self, method: str, request: Any = None) -> tuple[str, str]:
        with pytest.raises(ApiError) as refused:
            self.call(method, request)
        return refused.value.code.name, refused.value.message


@pytest.fixture
def way(tmp_path: Path) -> Way:
    return Way(tmp_path)


def get(name: str = f"{PARENT}/customJobs/1") -> vertex.GetCustomJobRequest:
    return vertex.GetCustomJobRequest(name=name)


def test_methods_that_no_fault_is_on_pass(way: Way) -> None:
    way.add("error", code="INTERNAL", times=0)
    way.add("stockout")
    way.add("preempt")
    assert way.call("CreateTensorboard") == "answer"
    assert way.refusal("GetCustomJob", get()) == ("INTERNAL", "fault 1 of the local cloud")
    assert [entry.seen for entry in way.table.entries()] == [1, 0, 0]


def held_by(way: Way, method: str, request: Any, service: str = "jobs") -> str:
    """A held call as it is shown; it ends when its fault is cleared."""
    fault = way.add("hold", service, method=method)
    refused: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: refused.append(way.refusal(method, request)))
    thread.start()
    shown = way.table.wait_held(fault, 20)
    way.table.clear(fault)
    thread.join(20)
    assert refused == [("UNAVAILABLE", f"fault {fault} was cleared while it held the call")]
    return shown


JOB = {"display_name": "train", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("method", "request_", "service", "shown"),
    [
        ("GetCustomJob", get("n"), "jobs", "GetCustomJob n"),
        ("CreateCustomJob", vertex.CreateCustomJobRequest(parent="p", custom_job=JOB), "jobs",
         "CreateCustomJob train"),
        ("ListCustomJobs", vertex.ListCustomJobsRequest(parent="p"), "jobs", "ListCustomJobs p"),
        ("UploadModel", vertex.UploadModelRequest(parent="p", model_id="m"), "models",
         "UploadModel m"),
        ("DeployModel", vertex.DeployModelRequest(endpoint="e"), "models", "DeployModel e"),
        ("ListModels", vertex.ListModelsRequest(), "models", "ListModels"),
    ],
)  # fmt: skip
def test_a_held_call_is_shown_by_what_it_names(
    way: Way, method: str, request_: Any, service: str, shown: str
) -> None:
    assert held_by(way, method, request_, service) == shown


def test_a_lost_record_leaves_lists_and_operations_and_others_stay(way: Way) -> None:
    way.add("lost-record", match="b")
    one, two, three = (
        vertex.CustomJob(name="1", display_name="x", labels={"k": "b1"}),
        vertex.CustomJob(name="2", display_name="x", labels={"k": "c"}),
        vertex.CustomJob(name="3", display_name="b"),
    )
    way.answer = vertex.ListCustomJobsResponse(custom_jobs=[one, two, three], next_page_token="t")
    listed = way.call("ListCustomJobs", vertex.ListCustomJobsRequest(parent="p"))
    assert listed == vertex.ListCustomJobsResponse(custom_jobs=[two], next_page_token="t")
    way.answer = "answer"
    request = vertex.CreateCustomJobRequest(custom_job={"display_name": "b"})
    assert way.call("CreateCustomJob", request) == "answer"
    assert way.call("GetOperation", get("b/operations/1")) == "answer"


def job(name: str, seconds: float) -> vertex.CustomJob:
    """A job that was made so many seconds ago."""
    made = datetime.now(UTC) - timedelta(seconds=seconds)
    return vertex.CustomJob(name=name, create_time=made)


def test_of_several_faults_the_first_is_the_outermost(way: Way) -> None:
    way.add("stale", seconds=60)
    way.add("error", code="ABORTED", when="after")
    way.answer = vertex.ListCustomJobsResponse(custom_jobs=[job("1", 100), job("2", 20)])
    asked = vertex.ListCustomJobsRequest()
    assert way.refusal("ListCustomJobs", asked) == ("ABORTED", "fault 2 of the local cloud")
    assert way.made == 1
    assert [each.name for each in way.call("ListCustomJobs", asked).custom_jobs] == ["1"]


class Operations:
    """The faults of operations, with the requests that meet them."""

    def __init__(self, folder: Path) -> None:
        self.table, self.stopping = FaultTable(folder / "faults.sqlite"), threading.Event()
        self.around = OperationFaults(self.table, self.stopping)

    def add(self, kind: str, **given: Any) -> int:
        return self.table.add(Fault.parse(service="operations", kind=kind, **given))

    def meet(self, when: str, method: str = "UploadModel", **request: Any) -> None:
        asked: Mapping[str, Any] = request
        self.around(when, method, asked)


@pytest.fixture
def operations(tmp_path: Path) -> Operations:
    return Operations(tmp_path)


def test_an_operation_fails_before_or_after_its_work(operations: Operations) -> None:
    operations.add("error", code="ABORTED", when="after", match='"x": "y"')
    operations.meet("before", x="y")
    operations.meet("after", x="z")
    with pytest.raises(ApiError) as refused:
        operations.meet("after", x="y")
    assert refused.value.code is grpc.StatusCode.ABORTED
    assert refused.value.message == "fault 1 of the local cloud"
    operations.meet("after", x="y")


def test_an_operation_is_delayed_and_left_by_a_server_that_stops(operations: Operations) -> None:
    waited: list[float | None] = []
    operations.stopping.wait = lambda seconds=None: bool(waited.append(seconds))
    operations.add("delay", seconds=7, times=2)
    operations.meet("before")
    assert waited == [7]
    operations.stopping.set()
    with pytest.raises(ServerStoppingError):
        operations.meet("before")
