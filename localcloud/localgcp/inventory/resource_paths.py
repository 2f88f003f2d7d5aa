"""Parses references to resources, and normalizes them for the store.

A reference may be a bare name, a path from ``projects/`` or ``regions/`` on, or a full link; a
project in it may be named by id or by number.
"""

from __future__ import annotations

from typing import Final

from localgcp.inventory.store import Store, project_number

SELF_LINK: Final = "https://www.googleapis.com/compute/v1/"


def project_id(store: Store, id_or_number: str) -> str | None:
    """Return the id of the local project with this id or number; None for an unknown number."""
    if not id_or_number.isdecimal():
        return id_or_number
    return next((p for p in store.projects() if project_number(p) == id_or_number), None)


def canonical(store: Store, link: str) -> str:
    """Return the path of a full link or path, with the project's id in place of its number."""
    path = link[link.index("projects/") :]
    _, project, *rest = path.split("/")
    return "/".join(["projects", project_id(store, project) or project, *rest])


def resolve(store: Store, given: str, collection: str, *, project: str, region: str = "") -> str:
    """Return the path of the reference ``given`` in a resource of ``project`` and ``region``.

    ``collection``: ``networks``, which are global, or one that lies in a region (``subnetworks``).
    """
    if "projects/" in given:
        return canonical(store, given)
    if given.startswith(("global/", "regions/")):
        return f"projects/{project}/{given}"
    place = "global" if collection == "networks" else f"regions/{short_name(region)}"
    return f"projects/{project}/{place}/{collection}/{given}"


def short_name(link: str) -> str:
    """Return the last part of a link; a bare name stays unchanged."""
    return link.rpartition("/")[2]


def project_of(path: str) -> str:
    """Return the project in a path ``projects/P/…``."""
    return path.split("/")[1]
