"""Projects of the local cloud, and their numbers."""

from __future__ import annotations

import hashlib
from typing import Final

#: How ids of projects begin that live in the local cloud; no other module compares it.
LOCAL_PREFIX: Final = "local-"


def is_local(project: str) -> bool:
    """True if the project is in the local cloud: only such projects use it."""
    return project.startswith(LOCAL_PREFIX)


def local_project_number(project: str) -> str:
    """The 12-digit number that a project has in the local cloud, the same on every machine."""
    digest = int(hashlib.sha256(project.encode()).hexdigest(), 16)
    return str(10**11 + digest % (9 * 10**11))
