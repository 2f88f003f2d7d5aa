"""Implementations of the protocol's ports, and access to logs, with Google's official clients.

Functions import Google's libraries when called: most operations on a stack submit nothing.

=================  ===================================================================
``job_service``    calls of Vertex AI, with retries and error messages
``backends``       calls of Google Batch; routes calls to Vertex AI or Batch
``intent_store``   intent and turn records: objects in the control bucket
``prerequisites``  permissions, images, reservations and quota, before a job is cancelled
``logs``           log lines and accelerator utilization of a job
``vertex_api``     the required part of Google's client
=================  ===================================================================

The client of Vertex AI is a lazy package, whose code runs when a name other than a submodule is
first read. ``google.cloud.aiplatform_v1`` (google-cloud-aiplatform 2.7.0) imports clients of forty
services, which takes four seconds instead of one. Its ``__lazy_modules__`` need Python 3.15
(PEP 810).

Submissions use the account of the gcp provider: otherwise resources and jobs of one ``up`` would
have two owners. A component's job uses the account of its provider. Tokens stay in the process.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

# Imported here, so that one thread loads these modules while other threads wait for this package.
# If one thread imports a package and another its submodule, the threads wait for each other, and
# Python raises _DeadlockError. Providers load Google's clients on several threads.
import google.api_core.exceptions
import google.api_core.retry
import google.auth.exceptions  # noqa: F401

from vertex_training.errors import OperatorError

if TYPE_CHECKING:
    from google.auth.impersonated_credentials import Credentials

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
    if sys.version_info >= (3, 15):
        return
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


#: https://www.pulumi.com/registry/packages/gcp/installation-configuration/
IMPERSONATION_VARIABLE: Final = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
#: Property of the gcp provider in a program that corresponds to this variable.
_PROVIDER: Final = "impersonate_service_account of the gcp provider"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9.:_-]*@[a-z0-9.-]+\.gserviceaccount\.com")
_token_lock = threading.Lock()


def is_service_account(account: str) -> bool:
    """Return whether the text has the form of a service account address."""
    return bool(_ADDRESS.fullmatch(account))


def impersonated_credentials(account: str = "") -> Credentials | None:
    """Return credentials of ``account``, or of the account in the environment, or None.

    Requests the first token, so that missing access is an error before a submission.

    Raises:
        OperatorError: the caller cannot impersonate the account, or its address is invalid.
    """
    source = _PROVIDER if account else IMPERSONATION_VARIABLE
    account = account or os.environ.get(IMPERSONATION_VARIABLE, "")
    if not account:
        return None
    if not is_service_account(account):
        raise OperatorError(f"{source} must be the address of a service account")
    with _token_lock:
        return _credentials(account, source)


@functools.lru_cache(maxsize=4)
def _credentials(account: str, source: str) -> Credentials:
    import google.auth
    from google.auth import impersonated_credentials
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        caller, _ = google.auth.default(scopes=[SCOPE])
        credentials = impersonated_credentials.Credentials(caller, account, [SCOPE])
        credentials.refresh(Request())
    except GoogleAuthError as error:
        reason = str(error.args[0] if error.args else error).partition("\n")[0][:300]
        raise OperatorError(
            f"the caller cannot impersonate {account}, the value of {source}: {reason} "
            "Hint: grant the caller roles/iam.serviceAccountTokenCreator on that account, or unset "
            f"{source}."
        ) from None
    return credentials
