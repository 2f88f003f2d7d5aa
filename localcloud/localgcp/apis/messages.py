"""The message types of Vertex AI and Batch, without the slow import of Google's clients."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any, Final

_RAN: Final = "__lazy_package_ran__"
_lock: Final = threading.RLock()


class _LazyPackage(ModuleType):
    """A package that executes ``__init__.py`` only when a name other than a submodule is read."""

    def __getattr__(self, name: str) -> Any:
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        with _lock:  # other threads wait until all names are defined
            if _RAN not in vars(self):
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                vars(self)[_RAN] = True  # set before the execution, which reads names
                try:
                    spec.loader.exec_module(self)
                except BaseException:
                    del vars(self)[_RAN]
                    raise
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def load_lazily(name: str) -> None:
    """Make a package importable without executing ``__init__.py``, unless already imported."""
    with _lock:
        parent, _, own = name.rpartition(".")
        # Finding a package's specification imports the parent package.
        if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None:
            package = importlib.util.module_from_spec(spec)
            package.__class__ = _LazyPackage
            sys.modules[name] = package
            setattr(sys.modules[parent], own, package)


for _package in ("google.cloud.aiplatform_v1", "google.cloud.batch_v1"):
    load_lazily(_package)
    load_lazily(f"{_package}.types")

from google.cloud.aiplatform_v1.types import (  # noqa: E402
    custom_job,
    endpoint,
    endpoint_service,
    hyperparameter_tuning_job,
    job_service,
    model,
    model_service,
    operation,
    pipeline_service,
    prediction_service,
    tensorboard,
    tensorboard_service,
    training_pipeline,
)
from google.cloud.batch_v1.types import batch  # noqa: E402
from google.cloud.batch_v1.types import job as batch_job  # noqa: E402

__all__ = [
    "batch",
    "batch_job",
    "custom_job",
    "endpoint",
    "endpoint_service",
    "hyperparameter_tuning_job",
    "job_service",
    "load_lazily",
    "model",
    "model_service",
    "operation",
    "pipeline_service",
    "prediction_service",
    "tensorboard",
    "tensorboard_service",
    "training_pipeline",
]
