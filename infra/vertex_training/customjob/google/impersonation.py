"""Credentials of the account that acts for the caller, as the gcp provider uses them.

``GOOGLE_IMPERSONATE_SERVICE_ACCOUNT`` makes the gcp provider act as another account. Submissions
act as the same one: otherwise resources and jobs of one ``up`` would have two owners. A component's
job names the account of its provider. The key ``gcp:impersonateServiceAccount`` of a stack file is
refused. Tokens stay in the process.
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
#: The same of a provider in a program.
_PROVIDER: Final = "impersonate_service_account of the gcp provider"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9.:_-]*@[a-z0-9.-]+\.gserviceaccount\.com")
_lock = threading.Lock()


def is_service_account(account: str) -> bool:
    """Return whether the text has the form of a service account's address."""
    return bool(_ADDRESS.fullmatch(account))


def impersonated_credentials(account: str = "") -> Credentials | None:
    """Credentials of ``account``, or else of the one that the environment names.

    None if none is named, for a client's own default.

    The first token is requested here, so a missing right is an error before anything is sent.

    Raises:
        OperatorError: the name is no service account, or the caller may not act as it.
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
        made = impersonated_credentials.Credentials(caller, account, [SCOPE])
        made.refresh(Request())
    except GoogleAuthError as error:
        raise OperatorError(
            f"{source} names {account}, and no token of it can be had: {_first_line(error)} "
            "Hint: the caller needs roles/iam.serviceAccountTokenCreator on that account, or do "
            "not set it."
        ) from None
    return made


def _first_line(error: Exception) -> str:
    text = str(error.args[0] if error.args else error)
    return text.partition("\n")[0][:300]
