"""Explains errors of refused reads: the object does not exist, or a permission is missing.

Google answers 403 without a permission, even if the object does not exist. The patterns match the
texts of the gcp plugin and of Vertex AI's client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_FORBIDDEN: Final = re.compile(
    r"\bError 403\b|\bPERMISSION_DENIED\b|\b403 Forbidden\b", re.IGNORECASE
)
_MISSING: Final = re.compile(r"\bError 404\b|\bNOT_FOUND\b|\b404 Not Found\b", re.IGNORECASE)
#: A permission in an error message: ``Permission 'x' denied``, ``does not have x access``.
_PERMISSION: Final = re.compile(
    r"[Pp]ermission '?([a-z]+(?:\.[A-Za-z]+){1,4})'?|"
    r"does not have ([a-z]+(?:\.[A-Za-z]+){1,4}) access"
)
#: The object that could not be read, in an error message.
_TARGET: Final = re.compile(
    r"on resource:? '?(?://[a-z.]+/)?([\w./@:-]{3,300})|"
    r"No such object: ([\w./@-]{3,300})|\b(projects/[\w./@:-]{3,300})"
)
#: Prefix of a permission, and the role that grants the permission.
_ROLES: Final = (
    ("storage.objects.", "roles/storage.objectViewer (`planReads` in the bootstrap) on the bucket"),
    ("aiplatform.", "roles/aiplatform.viewer on the project"),
    ("iam.", "roles/iam.securityReviewer on the project"),
    ("secretmanager.", "roles/secretmanager.viewer on the project"),
    ("compute.", "roles/compute.viewer on the project"),
)
#: Text of a 403 error because of a disabled API.
_API_OFF: Final = re.compile(r"\bSERVICE_DISABLED\b|\bhas not been used in project\b")


def explained(errors: Iterable[str]) -> tuple[str, ...]:
    """Return the errors. An explanation follows each error of a refused or failed read."""
    return tuple(line for error in errors for line in (error, *_meaning(error)))


def _meaning(error: str) -> Iterator[str]:
    match = _TARGET.search(error)
    target = next((group.rstrip(".,:") for group in match.groups() if group), "") if match else ""
    if _API_OFF.search(error):
        yield (
            "An API is disabled in the project, so its resources cannot be read. The error "
            "names the API."
        )
    elif _FORBIDDEN.search(error):
        what = target or "the object"
        yield (
            f"The account cannot read {what}: {_missing_permission(error)}. It is unknown "
            "whether the object exists."
        )
    elif _MISSING.search(error):
        what = target or "the error names no object"
        yield f"Does not exist: {what}. The account has the permission to read it."


def _missing_permission(error: str) -> str:
    named = _PERMISSION.search(error)
    if named is None:
        return "it lacks a permission that the error does not name"
    permission = named[1] or named[2]
    role = next((role for start, role in _ROLES if permission.startswith(start)), None)
    return f"permission {permission} is missing" + (f" (granted by {role})" if role else "")
