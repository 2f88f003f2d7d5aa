"""Write image digests into a stack file atomically, and copy images from another stack."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError, UnknownNameError, did_you_mean
from vertex_training.images.pins import PLACEHOLDER
from vertex_training.located_yaml.editing import set_value
from vertex_training.settings.model import Settings
from vertex_training.settings.project_files import file_of
from vertex_training.stack import SCHEMA
from vertex_training_cli.engine.paths import link_out
from vertex_training_cli.images import registry

#: Number of digits in the tag ``digest-…`` of a promoted image.
TAG_DIGITS: Final = 32


def write_pins(root: Path, stack: str, name: str, pins: Mapping[str, str]) -> bool:
    """Set keys of an image in a stack file atomically; return True if the file changed."""
    named = file_of(root, stack)
    file = named.resolve()
    if link_out(named):
        what = f"{named.name} is a link to a file outside its folder. The file was not written."
        raise CommandError(what, f"replace {named.name} by a regular file")
    try:
        with _locked(file.parent):
            before = after = file.read_bytes()
            for key, value in pins.items():
                path = ("config", f"{SCHEMA.namespace}:images", name, key)
                after = set_value(after, path, value, file.name)
            if after != before:
                mode = file.stat().st_mode & 0o777
                RootDirectory(file.parent).write(file.name, after, mode)
    except OSError as failed:
        text = f"cannot write {file.name}: {failed.strerror}. The file is unchanged."
        raise CommandError(text) from None
    return after != before


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder: a lock of the stack file would end when the file is replaced."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Promotion:
    """One image to copy from one stack to another."""

    name: str
    source: str
    """Full name without digest in the source stack."""
    target: str
    """Full name without digest in the target stack."""
    tag: str
    """Tag of the copy. The repository's cleanup would delete an untagged image."""
    pins: Mapping[str, str]
    """New keys of the image in the target's stack file: the digest and maybe its context."""


def known_names(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return the named images without duplicates; without names, all images of the stack."""
    for name in names:
        if name not in settings.images:
            text = f"stack {settings.stack} has no image {name!r}."
            raise UnknownNameError(text, did_you_mean(name, settings.images))
    return list(dict.fromkeys(names or settings.images))


def plan(source: Settings, target: Settings, names: Sequence[str]) -> list[Promotion]:
    """Return the images to copy."""
    promotions = list[Promotion]()
    for name in known_names(source, names):
        image, in_target = source.images[name], target.images.get(name)
        if image.uri or (in_target and in_target.uri):
            stack = source.stack if image.uri else target.stack
            text = f"image {name} of stack {stack} has a `uri` and is not built by a stack."
            raise CommandError(text, "copy the `uri` into the other stack file.")
        if image.digest is None or image.digest == PLACEHOLDER:
            text = f"image {name} of stack {source.stack} is not built."
            raise CommandError(text, f"run `vt images build {name} --stack {source.stack}`")
        tag = image.built_from or f"digest-{image.digest.removeprefix('sha256:')[:TAG_DIGITS]}"
        values = {"digest": image.digest}
        if image.built_from and in_target and in_target.context:
            values["builtFrom"] = image.built_from
        paths = source.names.image(name), target.names.image(name)
        promotions.append(Promotion(name, *paths, tag, values))
    return promotions


def run(promotions: Sequence[Promotion], root: Path, stack: str) -> Iterator[str]:
    """Copy each image, then pin its digest in the file of ``stack``. Yield a line per image."""
    for promotion in promotions:
        origin = registry.remote_image(promotion.source)
        goal = registry.remote_image(promotion.target)
        digest = promotion.pins["digest"]
        sent = origin.copy(digest, goal, (promotion.tag,))
        changed = write_pins(root, stack, promotion.name, promotion.pins)
        what = "promoted" if changed else "unchanged"
        yield f"{promotion.name}: {what} {digest} ({sent:,} bytes copied)"
