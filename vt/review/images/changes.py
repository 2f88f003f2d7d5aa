"""Images whose digest changes, each once, with the jobs that run them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vt.review.jobs import JobChange

#: Paths in a request of a job.
_PATH: Final = re.compile(r"jobSpec\.workerPoolSpecs\[\d+\]\.containerSpec\.imageUri\Z")
#: Column heads of the table.
COLUMNS: Final = ("image", "before", "after", "built from", "jobs")
#: Where nobody looked: offline, or no registry could be asked.
NOT_LOOKED_AT: Final = "not looked at"


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One image of which jobs get another digest."""

    name: str
    """Without registry and digest."""
    old: str
    """Digest, or the whole name where it has none."""
    new: str
    uri: str
    """The new image in full."""
    jobs: tuple[str, ...]


def image_changes(jobs: Iterable[JobChange]) -> tuple[ImageChange, ...]:
    """The images that change in ``jobs``, by name."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for job in jobs:
        for each in job.differences:
            if _PATH.match(each.path) and each.old and each.new:
                found.setdefault((each.old, each.new), {})[job.name] = None
    changes = (
        ImageChange(name_of(new), _version(old), _version(new), new, tuple(names))
        for (old, new), names in found.items()
    )
    return tuple(sorted(changes, key=lambda change: (change.name, change.old)))


def cells(change: ImageChange, origins: Mapping[str, str]) -> tuple[str, ...]:
    """A row of the table: digests cut to twelve digits."""
    origin = origins.get(change.uri, NOT_LOOKED_AT)
    return (change.name, _short(change.old), _short(change.new), origin, ", ".join(change.jobs))


def name_of(uri: str) -> str:
    """An image without registry, tag and digest."""
    return uri.rpartition("/")[2].partition("@")[0].partition(":")[0]


def _version(uri: str) -> str:
    return uri.partition("@")[2] or uri


def _short(version: str) -> str:
    head, _, digits = version.partition("sha256:")
    return f"sha256:{digits[:12]}" if digits and not head else version
