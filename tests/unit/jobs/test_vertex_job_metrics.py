"""Reports of the library for jobs, as the local cloud reads them and as Google's package would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vertex_job.errors import MetricError
from vertex_job.metrics import is_trial, report_metric

from localgcp.tuning.measurements import read_report

METRICS = [{"metricId": "accuracy", "goal": "MAXIMIZE"}]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "CLOUD_ML_TRIAL_ID": "7",
        "CLOUD_ML_HP_METRIC_FILE": str(tmp_path / "made" / "output.metrics"),
    }


def test_a_report_has_the_keys_of_googles_package(environ: dict[str, str]) -> None:
    assert is_trial(environ)
    assert not is_trial({})
    report_metric("accuracy", 0.5, 3, environ)
    line = json.loads(Path(environ["CLOUD_ML_HP_METRIC_FILE"]).read_text())
    assert line.pop("timestamp") > 0
    assert line == {"trial": "7", "accuracy": "0.5", "global_step": "3", "checkpoint_path": ""}


def test_the_last_hundred_reports_are_kept_and_read(environ: dict[str, str]) -> None:
    for step in range(250):
        report_metric("accuracy", -((step - 200) ** 2), step, environ)
    file = Path(environ["CLOUD_ML_HP_METRIC_FILE"])
    assert len(file.read_text().splitlines()) == 100
    reports = [read_report(file, METRICS, best=best, began=0) for best in (False, True)]
    last, best = (report.measurement for report in reports)
    assert last
    assert best
    assert (last.step, last.metrics) == (249, {"accuracy": -(49**2)})
    assert (best.step, best.metrics) == (200, {"accuracy": 0})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_ends_the_trial_with_the_step(
    environ: dict[str, str], value: float
) -> None:
    with pytest.raises(MetricError, match=r"accuracy is (nan|inf) at step 9"):
        report_metric("accuracy", value, 9, environ)
    assert not Path(environ["CLOUD_ML_HP_METRIC_FILE"]).exists()
