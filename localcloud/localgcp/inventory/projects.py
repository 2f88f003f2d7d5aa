"""Ids and numbers of the local cloud's projects."""

from __future__ import annotations

import hashlib
from typing import Final

#: Prefix of the ids of local projects. Other modules call ``is_local``.
LOCAL_PREFIX: Final = "local-"


def is_local(project: str) -> bool:
    """Return whether a project id belongs to the local cloud."""
    return project.startswith(LOCAL_PREFIX)


def local_project_number(project: str) -> str:
    """Return the 12-digit number of a local project, which is the same on every machine."""
    digest = int(hashlib.sha256(project.encode()).hexdigest(), 16)
    return str(10**11 + digest % (9 * 10**11))
