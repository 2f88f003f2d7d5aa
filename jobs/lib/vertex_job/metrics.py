"""Metrics of a trial, for hyperparameter tuning.

Vertex AI reads a file of JSON lines in the form of the package cloudml-hypertune, which has had no
release since 2019: one line for each report, the last 100.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vertex_job.errors import MetricError

_DEFAULT: Final = "/tmp/hypertune/output.metrics"
_KEPT: Final = 100


def is_trial(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if this process belongs to a trial of a tuning job."""
    return "CLOUD_ML_TRIAL_ID" in environ


def report_metric(
    metric_id: str, value: float, step: int = 0, environ: Mapping[str, str] = os.environ
) -> None:
    """Report the value of a metric at a step. Raises MetricError for NaN and infinity."""
    if not math.isfinite(value):
        raise MetricError(
            f"metric {metric_id} is {value} at step {step}, which is not a finite number."
        )
    report = {"timestamp": time.time(), "trial": environ.get("CLOUD_ML_TRIAL_ID", "0")}
    report |= {metric_id: str(float(value)), "global_step": str(step), "checkpoint_path": ""}
    file = Path(environ.get("CLOUD_ML_HP_METRIC_FILE", _DEFAULT))
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text().splitlines() if file.exists() else []
    file.write_text("".join(f"{line}\n" for line in [*before[1 - _KEPT :], json.dumps(report)]))
