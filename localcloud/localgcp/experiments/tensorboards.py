"""``google.cloud.aiplatform.v1.TensorboardService``: instances, and the time series in them.

Instances are those of stacks and those that clients make. Scalars and tensors are kept; blobs are
refused.
"""

from __future__ import annotations

import secrets
from typing import Any, ClassVar, Final

import grpc
from google.protobuf import json_format

from localgcp.apis.client import Api
from localgcp.apis.messages import (
    tensorboard,
    tensorboard_data,
    tensorboard_experiment,
    tensorboard_run,
    tensorboard_time_series,
)
from localgcp.apis.messages import tensorboard_service as requests
from localgcp.apis.refusals import invalid_argument, not_found
from localgcp.errors import ApiError
from localgcp.experiments.collections import Collection, ResourceService, Table, serves
from localgcp.experiments.records import Body, ExperimentTable, InstanceTable
from localgcp.vertex.service import JobService

INSTANCES: Final = Collection(
    tensorboard.Tensorboard,
    "tensorboard",
    "tensorboards",
    "tensorboards",
    requests,
    operations={
        "create": requests.CreateTensorboardOperationMetadata,
        "update": requests.UpdateTensorboardOperationMetadata,
    },
    defaults=lambda: {"blobStoragePathPrefix": f"cloud-ai-platform-{secrets.token_hex(4)}"},
)
EXPERIMENTS: Final = Collection(
    tensorboard_experiment.TensorboardExperiment,
    "tensorboard_experiment",
    "tensorboard_experiments",
    f"{INSTANCES.path}/*/experiments",
    requests,
)
RUNS: Final = Collection(
    tensorboard_run.TensorboardRun,
    "tensorboard_run",
    "tensorboard_runs",
    f"{EXPERIMENTS.path}/*/runs",
    requests,
)
SERIES: Final = Collection(
    tensorboard_time_series.TensorboardTimeSeries,
    "tensorboard_time_series",
    "tensorboard_time_series",
    f"{RUNS.path}/*/timeSeries",
    requests,
)
_POINTS: Final = 1000
_BLOBS: Final = tensorboard_time_series.TensorboardTimeSeries.ValueType.BLOB_SEQUENCE


@serves(INSTANCES, EXPERIMENTS, RUNS, SERIES)
class TensorboardService(ResourceService):
    """Instances, experiments, runs and time series with their points."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "tensorboard_service")

    def __init__(self, jobs: JobService, table: ExperimentTable) -> None:
        super().__init__(jobs, table)
        self._instances = InstanceTable(jobs.store)

    def table_of(self, collection: Collection) -> Table:
        """Instances are in the inventory."""
        return self._instances if collection is INSTANCES else self._table

    def before_create(self, collection: Collection, parent: str, body: Body) -> None:
        """One instance is the default; runs and time series have names that no other has."""
        if collection is INSTANCES and body.get("isDefault"):
            for each in self._instances.list(f"{parent}/tensorboards"):
                self._instances.put({**each, "isDefault": False})
        if collection not in (RUNS, SERIES):
            return
        segment, title = collection.path.rpartition("/")[2], body.get("displayName", "")
        siblings = self._table.list(f"{parent}/{segment}")
        if any(each.get("displayName") == title for each in siblings):
            text = f"{collection.message.__name__} with display name {title} already exists."
            raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)

    def batch_create_tensorboard_runs(
        self, request: requests.BatchCreateTensorboardRunsRequest, context: Any
    ) -> requests.BatchCreateTensorboardRunsResponse:
        """Several runs at once."""
        found = [self.create_tensorboard_run(each, context) for each in request.requests]  # pyright: ignore[reportAttributeAccessIssue]
        return requests.BatchCreateTensorboardRunsResponse(tensorboard_runs=found)

    def batch_create_tensorboard_time_series(
        self, request: requests.BatchCreateTensorboardTimeSeriesRequest, context: Any
    ) -> requests.BatchCreateTensorboardTimeSeriesResponse:
        """Several time series at once."""
        found = [self.create_tensorboard_time_series(each, context) for each in request.requests]  # pyright: ignore[reportAttributeAccessIssue]
        return requests.BatchCreateTensorboardTimeSeriesResponse(tensorboard_time_series=found)

    def write_tensorboard_run_data(
        self, request: requests.WriteTensorboardRunDataRequest, context: Any
    ) -> requests.WriteTensorboardRunDataResponse:
        """Add points to time series of a run: all, or none."""
        self._write_run(request, context)
        return requests.WriteTensorboardRunDataResponse()

    def write_tensorboard_experiment_data(
        self, request: requests.WriteTensorboardExperimentDataRequest, context: Any
    ) -> requests.WriteTensorboardExperimentDataResponse:
        """Add points to time series of several runs."""
        for each in request.write_run_data_requests:
            self._write_run(each, context)
        return requests.WriteTensorboardExperimentDataResponse()

    def _write_run(self, request: requests.WriteTensorboardRunDataRequest, context: Any) -> None:
        run = self.find(RUNS, request.tensorboard_run, context)["name"]
        found: list[tuple[str, list[Body]]] = []
        for each in request.time_series_data:
            name = f"{run}/timeSeries/{each.tensorboard_time_series_id}"
            if self._table.get(name) is None:
                raise not_found(name, SERIES.message.__name__)
            if each.value_type == _BLOBS:
                raise invalid_argument("BLOB_SEQUENCE: the local cloud keeps scalars and tensors.")
            body = json_format.MessageToDict(tensorboard_data.TimeSeriesData.pb(each))
            found.append((name, body.get("values", [])))
        for name, points in found:
            self._table.write_points(name, points)

    def read_tensorboard_time_series_data(
        self, request: requests.ReadTensorboardTimeSeriesDataRequest, context: Any
    ) -> requests.ReadTensorboardTimeSeriesDataResponse:
        """The points of a time series: all, or as many as asked, evenly."""
        body = self.find(SERIES, request.tensorboard_time_series, context)
        data = self._data(body, request.max_data_points or _POINTS)
        return requests.ReadTensorboardTimeSeriesDataResponse(time_series_data=data)

    def batch_read_tensorboard_time_series_data(
        self, request: requests.BatchReadTensorboardTimeSeriesDataRequest, context: Any
    ) -> requests.BatchReadTensorboardTimeSeriesDataResponse:
        """The points of several time series."""
        bodies = [self.find(SERIES, name, context) for name in request.time_series]
        data = [self._data(body, _POINTS) for body in bodies]
        return requests.BatchReadTensorboardTimeSeriesDataResponse(time_series_data=data)

    def _data(self, series: Body, most: int) -> tensorboard_data.TimeSeriesData:
        points = self._table.points(series["name"])
        count = len(points)
        if 0 < most < count:  # -1: all. The newest one stays
            points = [points[(index + 1) * count // most - 1] for index in range(most)]
        data = tensorboard_data.TimeSeriesData()
        body = {
            "tensorboardTimeSeriesId": series["name"].rpartition("/")[2],
            "valueType": series.get("valueType"),
            "values": points,
        }
        json_format.ParseDict(body, tensorboard_data.TimeSeriesData.pb(data))
        return data
