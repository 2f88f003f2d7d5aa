"""Data about Google Cloud, as YAML and JSON tables; each row names its source.

========================  ============================================================
``apis.yaml``             APIs that a stack enables, with the reason
``custom_job.json``       fields of CustomJob, from ``tools/generate/job_schema.py``
``tuning_job.json``       fields of HyperparameterTuningJob, beside those of CustomJob
``wrong_fields.yaml``     frequent wrong field names
``wrong_values.yaml``     frequent wrong values
``other_files.yaml``      files that are no job files, by their fields
``places.yaml``           places of messages in job files
``launchers.yaml``        programs that start other programs, and their options
``batch.yaml``            states, exit codes and missing features of Google Batch
``training_images.yaml``  prebuilt training images, with the end of their availability
``machines.yaml``         machine types and their list prices
``accelerators.yaml``     accelerators, with regions and list prices
``regions.yaml``          regions that run training jobs
``regional_prices.yaml``  list prices by region
``query_prices.yaml``     list prices of BigQuery queries
``zones.yaml``            zones of regions
``grants.yaml``           grants that the stack may make, with reasons
``roles.yaml``            predefined IAM roles, to detect misspelled ones
``resource_types.yaml``   names, data and required permissions of resource types
``sources.yaml``          sources of machines, accelerators and regions
``bandwidth.yaml``        network bandwidth of machines, for reduction servers
``serving_tpus.yaml``     TPUs of endpoints, by region
``address_blocks.yaml``   address blocks that a training network cannot use
``peering_ranges.yaml``   number of parallel jobs in a range, by size
``machines``              reads machine types, accelerators and regions
``resource_types``        reads resource types
``costs``                 maximum costs of jobs and endpoints
========================  ============================================================
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Final


@functools.cache
def load(name: str) -> Any:
    """Return the parsed content of a file of this package. Callers must not modify it."""
    # Policies import this module without packages beyond the standard library.
    import yaml

    from vertex_training.located_yaml.values import Loader

    text = (resources.files("vertex_training.catalog") / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.load(text, Loader=Loader)


#: Metric of accelerator utilization in Cloud Monitoring, from 0 to 1. Its monitored
#: resource is ``cloudml_job``, with a series for each job and task:
#: https://docs.cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml
ACCELERATOR: Final = "accelerator/utilization"
#: Permission to read a metric.
READ_PERMISSION: Final = "monitoring.timeSeries.list"
_TRAINING: Final = "ml.googleapis.com/training/"


def metric_filter(metric: str) -> str:
    """Return the Cloud Monitoring filter of a training metric, like ``cpu/utilization``."""
    return f'metric.type="{_TRAINING}{metric}" AND resource.type="cloudml_job"'
