"""Images whose digest changes, each once, with the jobs, schedules and models that have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.schedules import ScheduleChange
from vertex_training_cli.review.serving import VersionChange

#: Paths in a request of a job, or of a tuning job.
_PATH: Final = re.compile(
    r"(?:jobSpec|trialJobSpec)\.workerPoolSpecs\[\d+\]\.containerSpec\.imageUri\Z"
)
#: Images whose labels a registry can be asked for.
_PINNED: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/[^@]+@sha256:[0-9a-f]{64}\Z")
#: Column heads of the table.
COLUMNS: Final = ("image", "before", "after", "built from", "used by")
#: Where nobody looked: offline, or no registry could be asked.
NOT_LOOKED_AT: Final = "not looked at"


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One image of which jobs or models get another digest."""

    name: str
    """Without registry and digest."""
    old: str
    """Digest, or the whole name where it has none."""
    new: str
    uri: str
    """The new image in full."""
    jobs: tuple[str, ...]
    """Names of jobs, and versions like ``model titanic run 3``."""

    @property
    def versions(self) -> tuple[str, str]:
        """Before and after, digests cut to twelve digits."""
        return _short(self.old), _short(self.new)


def image_changes(
    jobs: Iterable[JobChange | ScheduleChange], models: Iterable[VersionChange] = ()
) -> tuple[ImageChange, ...]:
    """The images that change in ``jobs``, schedules among them, and ``models``, by name."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for job in jobs:
        for each in job.differences:
            if _PATH.match(each.path) and each.old and each.new:
                found.setdefault((each.old, each.new), {})[job.name] = None
    for version in models:
        if version.image_before and version.image:
            found.setdefault((version.image_before, version.image), {})[version.title] = None
    changes = (
        ImageChange(name_of(new), _version(old), _version(new), new, tuple(names))
        for (old, new), names in found.items()
    )
    return tuple(sorted(changes, key=lambda change: (change.name, change.old)))


@dataclass(frozen=True, slots=True)
class RunningImage:
    """One image by digest that is in use after the change, and that is no ``ImageChange``."""

    name: str
    version: str
    uri: str
    jobs: tuple[str, ...]


def other_images(
    jobs: Iterable[JobChange | ScheduleChange], models: Iterable[VersionChange] = ()
) -> tuple[RunningImage, ...]:
    """Images in Artifact Registry, by digest, of what stays or is new; by name."""
    jobs = [job for job in jobs if job.action not in ("cancel", "forget", "end")]
    models = [each for each in models if each.action not in ("delete", "leave")]
    changed = {change.uri for change in image_changes(jobs, models)}
    used = [(uri, job.name) for job in jobs for uri in job.images]
    used += [(each.image, each.title) for each in models]
    found: dict[str, list[str]] = {}
    for uri, name in used:
        if uri not in changed and _PINNED.match(uri):
            found.setdefault(uri, []).append(name)
    return tuple(
        sorted(
            (RunningImage(name_of(u), _version(u), u, tuple(n)) for u, n in found.items()),
            key=lambda image: (image.name, image.uri),
        )
    )


def line(image: RunningImage, origins: Mapping[str, str]) -> tuple[str, ...]:
    """Name with twelve digits, where it was built from, and what has it."""
    name = f"{image.name}@{_short(image.version)}"
    return (name, origins.get(image.uri, NOT_LOOKED_AT), ", ".join(image.jobs))


def cells(change: ImageChange, origins: Mapping[str, str]) -> tuple[str, ...]:
    """A row of the table: digests cut to twelve digits."""
    origin = origins.get(change.uri, NOT_LOOKED_AT)
    return (change.name, *change.versions, origin, ", ".join(change.jobs))


def shown(name: str) -> str:
    """An image without its registry, its digest cut to twelve digits."""
    short, _, digest = name.rpartition("/")[2].partition("@sha256:")
    return f"{short}@sha256:{digest[:12]}" if digest else short


def name_of(uri: str) -> str:
    """An image without registry, tag and digest."""
    return uri.rpartition("/")[2].partition("@")[0].partition(":")[0]


def _version(uri: str) -> str:
    return uri.partition("@")[2] or uri


def _short(version: str) -> str:
    head, _, digits = version.partition("sha256:")
    return f"sha256:{digits[:12]}" if digits and not head else version
