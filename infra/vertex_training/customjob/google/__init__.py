"""Implementations of the protocol's ports, and access to logs, with Google's official clients.

Functions import Google's libraries when called: most operations on a stack submit nothing.

=================  ===================================================================
``job_service``    calls of Vertex AI, with retries and error messages
``backends``       calls of Google Batch; routes calls to Vertex AI or Batch
``intent_store``   intent and turn records: objects in the control bucket
``prerequisites``  permissions, images, reservations and quota, before a job is cancelled
``logs``           log lines and accelerator utilization of a job
``vertex_api``     the required part of Google's client
``impersonation``  credentials of an impersonated account
=================  ===================================================================

The client of Vertex AI is a lazy package, whose code runs when a name other than a submodule is
first read. ``google.cloud.aiplatform_v1`` (google-cloud-aiplatform 2.7.0) imports clients of forty
services, which takes four seconds instead of one. Its ``__lazy_modules__`` need Python 3.15
(PEP 810).
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any, Final

# Imported here, so that one thread loads these modules while other threads wait for this package.
# If one thread imports a package and another its submodule, the threads wait for each other, and
# Python raises _DeadlockError. Providers load Google's clients on several threads.
import google.api_core.exceptions
import google.api_core.retry
import google.auth.exceptions  # noqa: F401

_RAN: Final = "__lazy_package_ran__"
_lock: Final = threading.RLock()


class _LazyPackage(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        with _lock:  # other threads wait until every name is defined
            if _RAN not in vars(self):
                self._run()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def _run(self) -> None:
        spec = self.__spec__
        assert spec is not None  # set by `load_lazily`,
        assert spec.loader is not None  # with the loader of a package of files
        vars(self)[_RAN] = True  # first: its code reads names of its own
        try:
            spec.loader.exec_module(self)
        except BaseException:
            del vars(self)[_RAN]
            raise


def load_lazily(name: str) -> None:
    """Make a package importable without running its code, unless it was imported before.

    Raises ModuleNotFoundError if the package does not exist.
    """
    with _lock:
        if name in sys.modules:
            return
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        package = importlib.util.module_from_spec(spec)
        package.__class__ = _LazyPackage
        sys.modules[name] = package
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, package)


for _package in ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types"):
    load_lazily(_package)
