"""Output folders from variables of the service; defaults are below ``./``.

The service sets these only if the job has ``baseOutputDirectory``
(https://docs.cloud.google.com/vertex-ai/docs/training/code-requirements). They are ``gs://`` URIs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def model_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of the model, without a trailing slash."""
    return _folder("AIP_MODEL_DIR", "model", environ)


def checkpoint_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of checkpoints, equal for all attempts, without a trailing slash."""
    return _folder("AIP_CHECKPOINT_DIR", "checkpoints", environ)


def tensorboard_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of TensorBoard's logs, without a trailing slash."""
    return _folder("AIP_TENSORBOARD_LOG_DIR", "logs", environ)


def _folder(variable: str, default: str, environ: Mapping[str, str]) -> str:
    return environ.get(variable, "").rstrip("/") or default
