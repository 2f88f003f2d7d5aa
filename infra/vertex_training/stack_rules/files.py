"""Files that a stack file names: they are there, and lie inside of the checkout."""

from __future__ import annotations

import errno
import pathlib
from collections.abc import Iterator, Mapping

from vertex_training.errors import Path, Problem
from vertex_training.images import dockerfile
from vertex_training.plan import objects
from vertex_training.settings.model import Image, Settings
from vertex_training.settings.project_files import is_of_git
from vertex_training.snapshots.request import is_of_snapshot


def problems(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """Files that are not there or lie outside of ``root``; contexts that build no image."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            yield from file_problems((section, key, "file"), job.file, root)
    for key, package in settings.packages.items():
        yield from _problem(("packages", key, "path"), package.path, root, is_file=False)
    for key, bucket in settings.buckets.items():
        yield from _objects(("buckets", key, "objects"), key, bucket.objects, root)
    for key, image in settings.images.items():
        if image.context:
            yield from _context(("images", key), image, image.context, root)


def file_problems(path: Path, name: str, root: pathlib.Path) -> Iterator[Problem]:
    """A file that is not there, or lies outside of ``root``; ``path`` names it."""
    return _problem(path, name, root, is_file=True)


def _problem(path: Path, name: str, root: pathlib.Path, *, is_file: bool) -> Iterator[Problem]:
    try:
        target = (root / name).resolve()
        is_there = target.is_file() if is_file else target.exists()
    except (OSError, RuntimeError) as error:  # the latter is a link to itself, before Python 3.13
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:
            yield Problem("is longer than a path may be", f"{name[:40]}…", "", path)
        else:
            yield Problem("cannot be followed", name, "it is a link to itself", path)
        return
    except ValueError:
        yield Problem("is no path: it has a NUL character", name, "", path)
        return
    if not target.is_relative_to(root.resolve()):
        yield Problem("lies outside of the checkout", name, "use a path below it", path)
    elif is_of_git(target.relative_to(root.resolve())):
        yield Problem("is git's own, which may hold a token", name, "name another file", path)
    elif not is_there:
        yield Problem("no such file", name, "paths start at the folder of Pulumi.yaml", path)


def _objects(
    path: Path, bucket: str, kept: Mapping[str, str], root: pathlib.Path
) -> Iterator[Problem]:
    """Files and folders that a bucket keeps: they are there, within bounds, and none is twice."""
    names: dict[str, str] = {}
    folders = 0
    for name, file in kept.items():
        here = (*path, name)
        if missing := list(_problem(here, file, root, is_file=False)):
            yield from missing
            continue
        is_folder = (root / file).is_dir()
        folders += is_folder
        if is_folder and (wrong := objects.folder_problem(root / file)):
            what, hint = wrong
            place = f"{bucket}/{objects.prefix_of(name)}".rstrip("/")
            yield Problem(what, file, hint or f"vt data push {place} {file}", here)
            continue
        for each in objects.kept_objects({name: file}, root):
            if unusable := objects.name_problem(each):
                yield Problem(unusable, each, "name the object otherwise", here)
                break
            if is_of_snapshot(each):
                what = "is a name of a snapshot's file, and those never change"
                yield Problem(what, each, "name the object otherwise", here)
                break
            if each in names:
                yield Problem(f"keeps {each}, as {names[each]} does", file, "one of them", here)
                break
            names[each] = name
    if folders > 1 and len(names) > objects.MOST_FILES:
        what = f"has {len(names)} files, more than {objects.MOST_FILES}"
        yield Problem(what, "", f"vt data push {bucket} FOLDER for the larger ones", path)


def _context(path: Path, image: Image, context: str, root: pathlib.Path) -> Iterator[Problem]:
    for number, folder in enumerate(image.include):
        at = (*path, "include", number)
        if missing := list(_problem(at, folder, root, is_file=False)):
            yield from missing
        elif (root / folder).is_file():
            yield Problem("is no folder", folder, "name the folder that holds it", at)
    if missing := list(_problem((*path, "context"), context, root, is_file=False)):
        yield from missing
        return
    included = {folder.rpartition("/")[2] for folder in image.include}
    for what, hint in dockerfile.problems(root / context, image.dockerfile, included):
        yield Problem(what, context, hint, (*path, "context"))
