"""Files that a stack names or sends: they exist inside the checkout and contain no secret."""

from __future__ import annotations

import dataclasses
import errno
import pathlib
from collections.abc import Iterator, Mapping

from vertex_training.errors import ConfigError, Path, Problem
from vertex_training.images import pins
from vertex_training.images.context import BuildContext
from vertex_training.plan import objects, packages
from vertex_training.secret_rules import files
from vertex_training.secret_rules.files import File, Scan
from vertex_training.secret_rules.redaction import is_secret_variable
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
    for what, hint in pins.problems(root / context, image.dockerfile, included):
        yield Problem(what, context, hint, (*path, "context"))


def scan(settings: Settings, root: pathlib.Path) -> Scan:
    """What ``pulumi up`` sends: packages and objects. Their files were checked before."""
    return files.scan(_sent(settings, root), settings.allowed_secrets)


def _sent(settings: Settings, root: pathlib.Path) -> Iterator[File]:
    names: dict[str, None] = {}
    for package in settings.packages.values():
        names |= dict.fromkeys(packages.sources(root / package.path, package.path))
    for bucket in settings.buckets.values():
        names |= dict.fromkeys(objects.kept_objects(bucket.objects, root).values())
    return (_file(root, name) for name in names if (root / name).is_file())


def _file(root: pathlib.Path, name: str) -> File:
    path = root / name
    return File(name, path.stat().st_size, path.read_bytes)


def scan_context(settings: Settings, name: str, context: BuildContext) -> Scan:
    """What a build of an image sends: the files of its context, and its build arguments."""
    image = settings.images[name]
    folders = {folder.rpartition("/")[2]: folder for folder in image.include}

    def shown(inside: str) -> str:
        top, _, rest = inside.partition("/")
        return f"{folders[top]}/{rest}" if top in folders else f"{image.context}/{inside}"

    found = files.scan(
        (
            File(shown(entry.name), entry.size, pathlib.Path(entry.path).read_bytes)
            for entry in context.entries
            if entry.is_file
        ),
        settings.allowed_secrets,
    )
    hint = "a layer of the image keeps it: mount it as a secret of the build, or read it in the job"
    arguments = (
        Problem("looks like a secret", "", hint, ("images", name, "buildArgs", key))
        for key, value in image.build_args.items()
        if is_secret_variable(key, value)
    )
    return Scan((*arguments, *found.problems), found.unscanned)


def context_warnings(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """What ``vt images build`` refuses, for a preview; nothing of an unreadable context."""
    for name, image in settings.images.items():
        source = pins.source_of(image)
        try:
            context = source.read(root) if source else None
        except ConfigError:
            continue
        if context:
            found = scan_context(settings, name, context)
            yield from (dataclasses.replace(each, level="warning") for each in found.problems)
            if found.note:
                yield Problem(found.note, path=("images", name, "context"), level="note")
