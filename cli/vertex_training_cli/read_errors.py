"""What a refused read means: the object is not there, or the account may not look. Pure.

Google answers 404 where the object is missing, and 403 where the account may not look, whether the
object is there or not. The texts are those of the gcp plugin and of Vertex AI's client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_FORBIDDEN: Final = re.compile(
    r"\bError 403\b|\bPERMISSION_DENIED\b|\b403 Forbidden\b", re.IGNORECASE
)
_MISSING: Final = re.compile(r"\bError 404\b|\bNOT_FOUND\b|\b404 Not Found\b", re.IGNORECASE)
#: A permission as messages name it: ``Permission 'x' denied``, ``does not have x access``.
_PERMISSION: Final = re.compile(
    r"[Pp]ermission '?([a-z]+(?:\.[A-Za-z]+){1,4})'?|"
    r"does not have ([a-z]+(?:\.[A-Za-z]+){1,4}) access"
)
#: What was read, as messages name it.
_TARGET: Final = re.compile(
    r"on resource:? '?(?://[a-z.]+/)?([\w./@:-]{3,300})|"
    r"No such object: ([\w./@-]{3,300})|\b(projects/[\w./@:-]{3,300})"
)
#: The role that has a permission, by the permission's beginning, and how the account gets it.
_ROLES: Final = (
    ("storage.objects.", "roles/storage.objectViewer on the bucket (`planReads` in the bootstrap)"),
    ("aiplatform.", "roles/aiplatform.viewer on the project"),
    ("iam.", "roles/iam.securityReviewer on the project"),
    ("secretmanager.", "roles/secretmanager.viewer on the project"),
    ("compute.", "roles/compute.viewer on the project"),
)
_OTHER_ROLE: Final = "a role with it"
_UNNAMED: Final = "what it reads"


def explained(errors: Iterable[str]) -> tuple[str, ...]:
    """The errors, each followed by what it means if a read was refused or found nothing."""
    return tuple(line for error in errors for line in (error, *_meaning(error)))


def _meaning(error: str) -> Iterator[str]:
    found = _TARGET.search(error)
    target = next((each for each in found.groups() if each), _UNNAMED) if found else _UNNAMED
    target = target.rstrip(".,:")
    if _FORBIDDEN.search(error):
        named = _PERMISSION.search(error)
        permission = (named[1] or named[2]) if named else ""
        role = next((role for start, role in _ROLES if permission.startswith(start)), _OTHER_ROLE)
        missing = f"{permission} is missing: {role}" if permission else f"it takes {role}"
        yield f"may not look: {missing} is needed for {target}. It may be there or not."
    elif _MISSING.search(error):
        yield f"not there: {target}. The account may look, and the cloud has no such object."
