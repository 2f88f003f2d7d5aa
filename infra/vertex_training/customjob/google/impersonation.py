"""Credentials of an impersonated account, as in the gcp provider.

Submissions use the account of the gcp provider: otherwise resources and jobs of one ``up`` would
have two owners. A component's job uses the account of its provider. Tokens stay in the process.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from typing import TYPE_CHECKING, Final

from vertex_training.errors import OperatorError

if TYPE_CHECKING:
    from google.auth.impersonated_credentials import Credentials

#: https://www.pulumi.com/registry/packages/gcp/installation-configuration/
VARIABLE: Final = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
#: Property of the gcp provider in a program that corresponds to this variable.
_PROVIDER: Final = "impersonate_service_account of the gcp provider"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9.:_-]*@[a-z0-9.-]+\.gserviceaccount\.com")
_lock = threading.Lock()


def is_service_account(account: str) -> bool:
    """Return whether the text has the form of a service account address."""
    return bool(_ADDRESS.fullmatch(account))


def impersonated_credentials(account: str = "") -> Credentials | None:
    """Return credentials of ``account``, or of the account in the environment, or None.

    Requests the first token, so that missing access is an error before a submission.

    Raises:
        OperatorError: the caller cannot impersonate the account, or its address is invalid.
    """
    source = _PROVIDER if account else VARIABLE
    account = account or os.environ.get(VARIABLE, "")
    if not account:
        return None
    if not is_service_account(account):
        raise OperatorError(f"{source} must be the address of a service account")
    with _lock:
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
