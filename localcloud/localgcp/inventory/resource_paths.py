"""Ids and numbers of local projects; references to resources, and their paths in the store."""

from __future__ import annotations

import hashlib
from typing import Final, Protocol

#: Prefix of the ids of local projects. Other modules call ``is_local``.
LOCAL_PREFIX: Final = "local-"


def is_local(project: str) -> bool:
    """Return whether a project id belongs to the local cloud."""
    return project.startswith(LOCAL_PREFIX)


def project_number(project: str) -> str:
    """Return the 12-digit number of a local project, which is the same on every machine."""
    digest = int(hashlib.sha256(project.encode()).hexdigest(), 16)
    return str(10**11 + digest % (9 * 10**11))


class Projects(Protocol):
    """The store, as far as paths depend on it."""

    def projects(self) -> set[str]: ...


SELF_LINK: Final = "https://www.googleapis.com/compute/v1/"


def project_id(store: Projects, id_or_number: str) -> str | None:
    """Return the id of the project with this id or number, or None for an unknown number."""
    if not id_or_number.isdecimal():
        return id_or_number
    return next((p for p in store.projects() if project_number(p) == id_or_number), None)


def canonical(store: Projects, link: str) -> str:
    """Return the path of a link or path, with the project's id instead of the number."""
    path = link[link.index("projects/") :]
    _, project, *rest = path.split("/")
    return "/".join(["projects", project_id(store, project) or project, *rest])


def resolve(store: Projects, link: str, collection: str, *, project: str, region: str = "") -> str:
    """Return the path of a reference in a resource of ``project`` and ``region``.

    ``collection`` is ``networks`` (global) or a regional collection such as ``subnetworks``.
    """
    if "projects/" in link:
        return canonical(store, link)
    if link.startswith(("global/", "regions/")):
        return f"projects/{project}/{link}"
    place = "global" if collection == "networks" else f"regions/{short_name(region)}"
    return f"projects/{project}/{place}/{collection}/{link}"


def short_name(link: str) -> str:
    """Return the last part of a link or path."""
    return link.rpartition("/")[2]


def project_of(path: str) -> str:
    """Return the project in a path ``projects/P/…``."""
    return path.split("/")[1]
