"""Facts about Google Cloud as data: each row names its source, code only reads them.

========================  ============================================================
``apis.yaml``             APIs a stack enables, and for what
``custom_job.json``       fields of CustomJob, from ``tools/generate/job_schema.py``
``tuning_job.json``       the same of HyperparameterTuningJob, beside that
``wrong_fields.yaml``     fields that do not exist but are written often
``wrong_values.yaml``     the same for values
``training_images.yaml``  prebuilt training images and the end of their availability
``machines.yaml``         machine types and their list prices
``accelerators.yaml``     accelerators, with regions and list prices
``regions.yaml``          regions that run training jobs
``regional_prices.yaml``  list prices of other regions than theirs
``query_prices.yaml``     list prices of queries in BigQuery
``zones.yaml``            zones of those regions
``roles.yaml``            predefined roles of IAM, to tell misspelled ones
``resource_types.yaml``   what each resource type is called, holds, and needs of permissions
``sources.yaml``          where the rows of machines, accelerators and regions come from
``bandwidth.yaml``        network bandwidth of machines, for reduction servers
``serving_tpus.yaml``     TPUs of endpoints, and where there are any
``address_blocks.yaml``   address blocks that a network for training cannot have
``peering_ranges.yaml``   how many jobs run at once in a range of each size
``machines``              reads machine types, accelerators and regions
``resource_types``        reads resource types
``costs``                 what a job can cost at most
========================  ============================================================
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Final


@functools.cache
def load(name: str) -> Any:
    """The content of one file of this package. Do not change what is returned."""
    # Policies import tokens from here, where nothing but the standard library need be.
    import yaml

    from vertex_training.located_yaml.values import Loader

    text = (resources.files("vertex_training.catalog") / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.load(text, Loader=Loader)


#: Metric of training in Cloud Monitoring: how much accelerators do, from 0 to 1. Its monitored
#: resource is ``cloudml_job``, with a series for each job and task:
#: https://docs.cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml
ACCELERATOR: Final = "accelerator/utilization"
#: What reading a metric takes.
READ_PERMISSION: Final = "monitoring.timeSeries.list"
_TRAINING: Final = "ml.googleapis.com/training/"


def metric_filter(metric: str) -> str:
    """The filter of a metric of training, like ``cpu/utilization``."""
    return f'metric.type="{_TRAINING}{metric}" AND resource.type="cloudml_job"'
