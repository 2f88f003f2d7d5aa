"""Files that a stack file names: they are there, and lie inside of the checkout."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from infra.errors import Path, Problem
from infra.images import dockerfile
from infra.settings.model import Settings


def problems(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """Files that are not there or lie outside of ``root``; contexts that build no image."""
    for key, job in settings.jobs.items():
        yield from _problem(("jobs", key, "file"), job.file, root, is_file=True)
    for key, package in settings.packages.items():
        yield from _problem(("packages", key, "path"), package.path, root, is_file=False)
    for key, bucket in settings.buckets.items():
        for name, file in bucket.objects.items():
            yield from _problem(("buckets", key, "objects", name), file, root, is_file=True)
    for key, image in settings.images.items():
        if image.context:
            yield from _context(("images", key, "context"), image.context, image.dockerfile, root)


def _problem(path: Path, name: str, root: pathlib.Path, *, is_file: bool) -> Iterator[Problem]:
    target = (root / name).resolve()
    if not target.is_relative_to(root.resolve()):
        yield Problem("lies outside of the checkout", name, "use a path below it", path)
    elif not (target.is_file() if is_file else target.exists()):
        yield Problem("no such file", name, "paths start at the folder of Pulumi.yaml", path)


def _context(path: Path, context: str, file: str, root: pathlib.Path) -> Iterator[Problem]:
    if missing := list(_problem(path, context, root, is_file=False)):
        yield from missing
        return
    for what, hint in dockerfile.problems(root / context, file):
        yield Problem(what, context, hint, path)
