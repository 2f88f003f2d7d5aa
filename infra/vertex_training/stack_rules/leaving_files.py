"""No secret is in what a stack sends: code of packages, objects, contexts and build arguments."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

from vertex_training.errors import ConfigError, Problem
from vertex_training.images import pins
from vertex_training.images.context import BuildContext
from vertex_training.plan import objects, packages
from vertex_training.secret_rules import files
from vertex_training.secret_rules.files import File, Scan
from vertex_training.secret_rules.redaction import is_secret_variable
from vertex_training.settings.model import Settings


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
