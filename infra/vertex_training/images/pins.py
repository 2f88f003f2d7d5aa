"""Pinned images of stacks, outdated pins and invalid Dockerfiles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from vertex_training.errors import ConfigError, Problem
from vertex_training.images.context import Source, tag_of
from vertex_training.located_yaml import document
from vertex_training.naming import Names
from vertex_training.settings import project_files
from vertex_training.settings.model import Image, Registry, Settings

#: ``current``: built from the current folder; ``behind``: built from other content; ``unknown``:
#: the stack file has no ``builtFrom``; ``missing``: never built; ``fixed``: has no context.
PinState = Literal["current", "behind", "unknown", "missing", "fixed"]
#: Digest for examples. No image has this digest.
PLACEHOLDER: Final = f"sha256:{'0' * 64}"


@dataclass(frozen=True, slots=True)
class Pin:
    """An image of a stack: its pinned digest, and the tag of its current context."""

    stack: str
    name: str
    image: Image
    uri: str
    """URI of the image without a digest."""
    tag: str = ""
    """Tag ``context-…`` of the current folder; empty without a context."""

    @property
    def digest(self) -> str:
        """Return the pinned digest; empty if the stack file has no digest."""
        outside = (self.image.uri or "").partition("@")[2]
        return outside or self.image.digest or ""

    @property
    def state(self) -> PinState:
        """Return the state of the pin: current, behind, unknown, missing or fixed."""
        if not self.tag:
            return "fixed"
        if self.digest in ("", PLACEHOLDER):
            return "missing"
        if self.image.built_from is None:
            return "unknown"
        return "current" if self.image.built_from == self.tag else "behind"


def source_of(image: Image) -> Source | None:
    """Return the source of an image; None if the image has no context."""
    if image.context is None:
        return None
    args = tuple(sorted(image.build_args.items()))
    return Source(image.context, image.dockerfile, args, image.target or "", tuple(image.include))


def pin_of(settings: Settings, name: str, root: Path) -> Pin:
    """Return the pin of an image. ``root`` is the checkout. Raises ConfigError."""
    image = settings.images[name]
    source = source_of(image)
    tag = tag_of(source, root) if source else ""
    uri = (image.uri or "").partition("@")[0] or settings.names.image(name)
    return Pin(settings.stack, name, image, uri, tag)


def warnings(settings: Settings, root: Path) -> Iterator[Problem]:
    """Yield warnings about outdated images. Each hint is the command that builds the image."""
    for name in settings.images:
        path = ("images", name, "context")
        command = f"vt images build {name} --stack {settings.stack}"
        try:
            pin = pin_of(settings, name, root)
        except ConfigError as failed:
            for problem in failed.problems:
                what = f"{problem.location}: {problem.what}"
                yield Problem(what, problem.value, problem.hint, path)
            continue
        what = {
            "behind": "jobs run an older image, because the folder changed after the build",
            "unknown": "the stack file has no builtFrom for this digest",
            "missing": "the image was not built yet",
        }.get(pin.state)
        if what:
            yield Problem(what, pin.image.context or "", command, path)


COPY: Final = re.compile(r"^[ \t]*(?:COPY|ADD)[ \t]+(\S.*)$", re.IGNORECASE | re.MULTILINE)
#: A comment line, possibly between joined lines.
COMMENT: Final = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
#: End of a line that continues on the next line.
JOINED: Final = re.compile(r"\\[ \t]*\n")
#: The instruction with the base image, such as ``FROM python:3.11``.
FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+\S", re.IGNORECASE | re.MULTILINE)


def problems(
    folder: Path, dockerfile: str, included: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield problems of a build context with hints. ``included`` names folders in the context."""
    file = folder / dockerfile
    if not file.is_file():
        yield (
            f"the folder has no {dockerfile}",
            "use the folder of the Dockerfile, or set dockerfile",
        )
        return
    if not is_inside(folder, dockerfile):
        what = f"{dockerfile} links to a file outside of the folder"
        yield what, "copy the linked file into the folder"
        return
    text = instructions(folder, dockerfile)
    if not FROM.search(text):
        yield f"{dockerfile} has no FROM", "begin the Dockerfile with FROM and a base image"
    for source in _copied(text):
        if source.lstrip("/").partition("/")[0] in included:
            continue
        if not (folder / source.lstrip("/")).exists():
            yield (
                f"{dockerfile} copies {source}, which does not exist in the folder",
                "write a path relative to the folder, or add other folders with include",
            )


def instructions(folder: Path, dockerfile: str) -> str:
    """Return a Dockerfile without comments, one instruction per line; empty if unreadable."""
    if not is_inside(folder, dockerfile):
        return ""
    text = (folder / dockerfile).read_text("utf-8", errors="replace")
    return JOINED.sub(" ", COMMENT.sub("", text))


def is_inside(folder: Path, dockerfile: str) -> bool:
    """Return True if a file is in the folder and is no link to a file outside of the folder."""
    file = folder / dockerfile
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())


def _copied(text: str) -> Iterator[str]:
    """Yield the plain paths in COPY and ADD, without patterns, variables and URLs."""
    for line in COPY.findall(text):
        words = line.split()
        if line.lstrip().startswith("[") or any(word.startswith("--from") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")][:-1]
        yield from (path for path in paths if not re.search(r"[*?\[$<]|://|@", path))


def pins_below(root: Path) -> list[Pin]:
    """Return all pins in the stack files of ``root``, without tags, sorted by stack and name."""
    return [
        pin
        for stack in project_files.names(root)
        for pin in _pins(stack, _config(root / project_files.file_name(stack)))
    ]


def digests_in(repository: str, pins: list[Pin]) -> tuple[str, ...]:
    """Return the sorted digests of the pinned images in ``repository``."""
    return tuple(sorted({pin.digest for pin in pins if pin.uri.startswith(f"{repository}/")}))


def digests_of(settings: Settings) -> set[str]:
    """Return the pinned digests of images in the stack's own repository."""
    digests = {image.digest for image in settings.images.values() if image.digest}
    return digests - {PLACEHOLDER}


def _pins(stack: str, config: Mapping[str, Any]) -> Iterator[Pin]:
    project, region = config.get("gcp:project"), config.get("gcp:region")
    images = config.get("vertex-training:images", config.get("images"))
    if not isinstance(images, dict):
        return
    names = Names(str(project), "", str(region), stack, _repository(config))
    for name, entry in sorted((str(key), value) for key, value in images.items()):
        try:
            image = Image.model_validate(entry)
        except ValueError:
            continue
        uri = (image.uri or "").partition("@")[0]
        pin = Pin(stack, name, image, uri)
        if pin.digest not in ("", PLACEHOLDER) and (uri or (project and region)):
            yield pin if uri else replace(pin, uri=names.image(name))


def _repository(config: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the name of the repository in a stack file; empty without a name."""
    registry = config.get("vertex-training:registry", config.get("registry"))
    try:
        section = Registry.model_validate(registry or {})
    except ValueError:
        return {}
    name = section.existing or section.name
    return {("registry", ""): name} if name else {}


def _config(file: Path) -> dict[str, Any]:
    try:
        content = document.read(file.read_bytes(), file.name).root.plain()
    except (OSError, ConfigError):
        return {}
    config = content.get("config") if isinstance(content, dict) else None
    return config if isinstance(config, dict) else {}
