"""Models and endpoints as services of a project, without threads and without containers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.protobuf import json_format

from localgcp.access import gate
from localgcp.errors import ApiError
from localgcp.experiments.records import ExperimentTable
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.serving import artifacts
from localgcp.serving.endpoints import EndpointService
from localgcp.serving.models import ModelService
from localgcp.serving.records import EndpointTable, VersionTable
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
GIVEN = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{NUMBER}/locations/us-central1"
MODEL, NAME = f"{PLACE}/models/m", f"{PLACE}/endpoints/77"
CONTAINER = {"imageUri": "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"}


class Containers:
    """In place of deployments: notes what is asked, and fails if it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: ApiError | None = None
        self.there = True

    def start(self, endpoint: str, deployed: Any, version: Any) -> Containers:
        self.calls.append(("start", endpoint, deployed["id"], version["versionId"]))
        return self

    def wait_healthy(self, wanted: int, _stopping: threading.Event) -> None:
        self.calls.append(("wait", wanted))
        if self.failure:
            raise self.failure

    def scale(self, count: int) -> None:
        self.calls.append(("scale", count))

    def end(self, endpoint: str, id_: str, *, drain: bool = True) -> None:
        self.calls.append(("end", endpoint, id_, drain))

    def get(self, _endpoint: str, _id: str) -> Containers | None:
        return self if self.there else None


class Runner:
    """In place of operations in threads: one is carried out when the test says."""

    def __init__(self, jobs: JobService) -> None:
        self.operations, self.stopping = jobs.operations, threading.Event()
        self.work: dict[str, Any] = {}
        self.begun: list[tuple[str, str, dict[str, Any]]] = []

    def register(self, method: str, work: Any) -> None:
        self.work[method] = work

    def begin(self, target: str, method: str, request: Mapping[str, Any], metadata: Any) -> Any:
        self.begun.append((target, method, dict(request)))
        return self.operations.begin(target, method, request, metadata)

    def finish(self, operation: Any) -> Any:
        """Carry the operation out, and end it."""
        [(name, method, request)] = self.operations.unfinished()
        assert name == operation.name
        outcome = self.work[method](name, request)
        self.operations.end(name, outcome)
        return outcome


class Served:
    """Both services of a project."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gate, "guest_behind", lambda _context: None)
        self.removed: list[str] = []
        monkeypatch.setattr(artifacts, "remove", lambda _url, uri: self.removed.append(uri))
        monkeypatch.setattr(artifacts, "copy", lambda _url, uri, _name, _stop: f"{uri}-copy")
        self.store, table = Store(path), ExperimentTable(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        jobs = JobService(self.store, JobTable(path), cast(Any, None))
        self.runner, self.containers = Runner(jobs), Containers()
        endpoints = EndpointTable(self.store, table)
        self.versions, self.kept = VersionTable(table), endpoints
        runner = cast(Any, self.runner)
        self.models: Any = ModelService(jobs, table, endpoints, runner, "http://s")
        self.endpoints: Any = EndpointService(
            jobs, table, endpoints, runner, cast(Any, self.containers)
        )

    def begin_upload(self, id_: str = "m", **changes: Any) -> Any:
        body = {"displayName": "d", "containerSpec": CONTAINER, **changes}
        model = vertex.Model()
        json_format.ParseDict(body, vertex.Model.pb(model))
        exists = bool(self.versions.versions(f"{PLACE}/models/{id_}"))
        target = {"parent_model": f"{GIVEN}/models/{id_}"} if exists else {"model_id": id_}
        request = vertex.UploadModelRequest(parent=GIVEN, model=model, **target)
        return self.models.upload_model(request, None)

    def upload(self, id_: str = "m", **changes: Any) -> Any:
        return self.runner.finish(self.begin_upload(id_, **changes))

    def endpoint(self, id_: str = "77", **body: Any) -> Any:
        request = vertex.CreateEndpointRequest(
            parent=GIVEN, endpoint={"display_name": "e", **body}, endpoint_id=id_
        )
        return self.endpoints.create_endpoint(request, None)

    def begin_deploy(
        self, id_: str = "1", model: str = MODEL, split: Any = None, **resources: Any
    ) -> Any:
        dedicated = {"machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": 1,
                     **resources}  # fmt: skip
        deployed = {"id": id_, "model": model, "dedicated_resources": dedicated}
        request = vertex.DeployModelRequest(
            endpoint=NAME, deployed_model=deployed, traffic_split=split or {}
        )
        return self.endpoints.deploy_model(request, None)

    def deploy(self, *args: Any, **more: Any) -> Any:
        return self.runner.finish(self.begin_deploy(*args, **more))

    def split(self) -> Any:
        return (self.kept.get(NAME) or {}).get("trafficSplit")

    def ids(self) -> list[str]:
        return [each["id"] for each in self.kept.deployed(NAME)]


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args, **more)
    return error.value.code.name, error.value.message
