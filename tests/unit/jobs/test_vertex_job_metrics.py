"""Reports of the library for jobs, as the local cloud reads them and as Google's package would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vertex_job.errors import MetricError
from vertex_job.metrics import is_trial, report_metric


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


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_value_that_is_no_number_ends_the_trial(environ: dict[str, str], value: float) -> None:
    with pytest.raises(MetricError, match=r"accuracy is (nan|inf) at step 9"):
        report_metric("accuracy", value, 9, environ)
    assert not Path(environ["CLOUD_ML_HP_METRIC_FILE"]).exists()
