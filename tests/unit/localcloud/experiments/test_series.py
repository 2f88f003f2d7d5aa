"""Runs and time series of a TensorBoard by its service alone: several at once, and their points."""

from __future__ import annotations

import re
from typing import Any

from google.cloud import aiplatform_v1 as vertex

from localgcp.experiments.tensorboards import INSTANCES, SERIES
from tests.unit.localcloud.experiments.test_resources import (
    GIVEN,
    PROJECT,
    Served,
    clock,
    refused,
    run_of,
    served,
)

__all__ = ["clock", "served"]


def series_of(served: Served, run: str, title: str = "loss", id_: str = "7") -> str:
    sent = vertex.TensorboardTimeSeries(display_name=title, value_type="SCALAR")
    return served.boards.create(SERIES, run, sent, id_, None)["name"]


def test_several_runs_and_time_series_are_made_at_once(served: Served) -> None:
    run = run_of(served)
    experiment = run.rpartition("/runs/")[0]
    requests = [
        {"parent": experiment, "tensorboard_run": {"display_name": name},
         "tensorboard_run_id": name} for name in ("two", "three")
    ]  # fmt: skip
    made = served.boards.batch_create_tensorboard_runs(
        vertex.BatchCreateTensorboardRunsRequest(parent=experiment, requests=requests), None
    )
    assert [each.name for each in made.tensorboard_runs] == [
        f"{experiment}/runs/two", f"{experiment}/runs/three",
    ]  # fmt: skip
    requests = [
        {"parent": run, "tensorboard_time_series": {"display_name": name, "value_type": "SCALAR"}}
        for name in ("loss", "accuracy")
    ]
    found = served.boards.batch_create_tensorboard_time_series(
        vertex.BatchCreateTensorboardTimeSeriesRequest(parent=experiment, requests=requests), None
    ).tensorboard_time_series
    assert [each.display_name for each in found] == ["loss", "accuracy"]
    for each in found:
        assert re.fullmatch(re.escape(f"{run}/timeSeries/") + r"[1-9]\d{18}", each.name)


def write(served: Served, run: str, steps: int, **more: Any) -> None:
    points = [{"step": step, "scalar": {"value": step}} for step in range(1, steps + 1)]
    data = {"tensorboard_time_series_id": "7", "value_type": "SCALAR", "values": points}
    request = {"tensorboard_run": run, "time_series_data": [data], **more}
    answer = served.boards.write_tensorboard_experiment_data(
        vertex.WriteTensorboardExperimentDataRequest(write_run_data_requests=[request]), None
    )
    assert answer == vertex.WriteTensorboardExperimentDataResponse()


def read(served: Served, name: str, most: int = 0) -> list[int]:
    request = vertex.ReadTensorboardTimeSeriesDataRequest(
        tensorboard_time_series=name, max_data_points=most
    )
    answer = served.boards.read_tensorboard_time_series_data(request, None)
    return [point.step for point in answer.time_series_data.values]


def test_a_thousand_points_are_read_unless_more_are_asked_for(served: Served) -> None:
    run = run_of(served)
    series = series_of(served, run)
    write(served, run, 1000)
    assert read(served, series) == [*range(1, 1001)]
    write(served, run, 1001)
    assert len(read(served, series)) == 1000
    assert read(served, series)[-1] == 1001
    assert read(served, series, 1001) == read(served, series, -1) == [*range(1, 1002)]
    assert read(served, series, 3) == [333, 667, 1001]
    request = vertex.BatchReadTensorboardTimeSeriesDataRequest(time_series=[series])
    [found] = served.boards.batch_read_tensorboard_time_series_data(request, None).time_series_data
    assert (found.tensorboard_time_series_id, found.value_type.name, len(found.values)) == (
        "7", "SCALAR", 1000,
    )  # fmt: skip


def test_points_of_one_series_that_is_not_there_keep_out_the_others(served: Served) -> None:
    run = run_of(served)
    series = series_of(served, run)
    data = [{"tensorboard_time_series_id": id_, "values": [{"step": 1}]} for id_ in ("7", "8")]
    request = vertex.WriteTensorboardRunDataRequest(tensorboard_run=run, time_series_data=data)
    assert refused(served.boards.write_tensorboard_run_data, request, None) == (
        "NOT_FOUND", f"The TensorboardTimeSeries does not exist: {run}/timeSeries/8",
    )  # fmt: skip
    assert read(served, series) == []


def test_of_a_project_that_is_not_here_nothing_is_made(served: Served) -> None:
    parent = GIVEN.replace(PROJECT, "local-none")
    code, _ = refused(served.boards.create, INSTANCES, parent, vertex.Tensorboard(), "", None)
    assert code == "PERMISSION_DENIED"
