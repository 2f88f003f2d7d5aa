"""Metrics of training in Cloud Monitoring.

Monitored resource ``cloudml_job``, one series a job and task, in ratios.
https://docs.cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml
"""

from __future__ import annotations

from typing import Final

#: How much accelerators do, from 0 to 1.
ACCELERATOR: Final = "accelerator/utilization"
#: What reading a metric takes.
READ_PERMISSION: Final = "monitoring.timeSeries.list"
_TRAINING: Final = "ml.googleapis.com/training/"


def metric_filter(metric: str) -> str:
    """The filter of a metric of training, like ``cpu/utilization``."""
    return f'metric.type="{_TRAINING}{metric}" AND resource.type="cloudml_job"'
