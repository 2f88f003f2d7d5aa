"""Facts about Google Cloud as data: each row names its source, code only reads them.

``apis.yaml``            APIs a stack enables, and for what
``custom_job.json``      fields of the CustomJob message, from ``tools/generate/job_schema.py``
``wrong_fields.yaml``    fields that do not exist but are written often
``training_images.yaml`` prebuilt training images and the end of their availability
``bandwidth.yaml``       network bandwidth of machines, for reduction servers
``machines.yaml``        machine types, with ``accelerators.yaml``, ``regions.yaml`` and
                         ``sources.yaml``; ``tools/generate/catalogue.py`` writes them

``machines`` reads the machines, ``costs`` works out what a job can cost.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

import yaml

from infra.located_yaml.loader import Loader


@functools.cache
def load(name: str) -> Any:
    """The content of one file of this package. Do not change what is returned."""
    text = (resources.files("infra.catalog") / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.load(text, Loader=Loader)
