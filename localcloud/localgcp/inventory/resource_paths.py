"""Convert references to resources (names, paths or links) to the paths of the store."""

from __future__ import annotations

from typing import Final

from localgcp.inventory.store import Store, project_number

SELF_LINK: Final = "https://www.googleapis.com/compute/v1/"


def project_id(store: Store, id_or_number: str) -> str | None:
    """Return the id of the project with this id or number, or None for an unknown number."""
    if not id_or_number.isdecimal():
        return id_or_number
    return next((p for p in store.projects() if project_number(p) == id_or_number), None)


def canonical(store: Store, link: str) -> str:
    """Return the path of a link or path, with the project's id instead of the number."""
    path = link[link.index("projects/") :]
    _, project, *rest = path.split("/")
    return "/".join(["projects", project_id(store, project) or project, *rest])


def resolve(store: Store, link: str, collection: str, *, project: str, region: str = "") -> str:
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
