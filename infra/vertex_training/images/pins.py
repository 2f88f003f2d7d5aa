"""Images that stacks pin, images behind their context, and Dockerfiles that cannot be built."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from vertex_training.errors import ConfigError, Problem
from vertex_training.images import identity
from vertex_training.images.identity import Source
from vertex_training.located_yaml import document
from vertex_training.naming import Names
from vertex_training.settings import project_files
from vertex_training.settings.model import Image, Registry, Settings

#: ``current``: built from what the folder holds; ``behind``: from something else; ``unknown``: the
#: stack file does not say from what; ``missing``: never built; ``fixed``: it has no context here.
PinState = Literal["current", "behind", "unknown", "missing", "fixed"]
#: The digest of an example: no image has it.
PLACEHOLDER: Final = f"sha256:{'0' * 64}"


@dataclass(frozen=True, slots=True)
class Pin:
    """An image of a stack: what is pinned, and what its context would give."""

    name: str
    image: Image
    uri: str
    """The image without digest."""
    tag: str
    """``context-…`` of the folder as it is; empty without a context."""

    @property
    def digest(self) -> str:
        """The pinned digest; empty if there is none."""
        outside = (self.image.uri or "").partition("@")[2]
        return outside or self.image.digest or ""

    @property
    def state(self) -> PinState:
        """Return the comparison of the pin with the context."""
        if not self.tag:
            return "fixed"
        if self.digest in ("", PLACEHOLDER):
            return "missing"
        if self.image.built_from is None:
            return "unknown"
        return "current" if self.image.built_from == self.tag else "behind"


def source_of(image: Image) -> Source | None:
    """Sources of an image; None if it is only pinned."""
    if image.context is None:
        return None
    return Source.of(image.context, image.dockerfile, image.build_args, image.target, image.include)


def pin_of(settings: Settings, name: str, root: Path) -> Pin:
    """The pin of one image. ``root`` is the checkout.

    Raises:
        ConfigError: the context cannot be read.
    """
    image = settings.images[name]
    source = source_of(image)
    tag = identity.tag_of(source, root) if source else ""
    uri = (image.uri or "").partition("@")[0] or settings.names.image(name)
    return Pin(name, image, uri, tag)


def warnings(settings: Settings, root: Path) -> Iterator[Problem]:
    """Images that are behind their context, with the command that mends it; for a preview."""
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
            "behind": "the image is not what this folder holds now: jobs run the older one",
            "unknown": "the stack file does not say what the digest was built from",
            "missing": "no image was built of it yet",
        }.get(pin.state)
        if what:
            yield Problem(what, pin.image.context or "", command, path)


COPY: Final = re.compile(r"^[ \t]*(?:COPY|ADD)[ \t]+(\S.*)$", re.IGNORECASE | re.MULTILINE)
#: A comment, also between joined lines. It ends with its line, whatever that ends with.
COMMENT: Final = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
#: Where a line goes on in the next one.
JOINED: Final = re.compile(r"\\[ \t]*\n")
#: Docker takes a first line such as ``FROM python:3.11``, after comments and ARG.
FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+\S", re.IGNORECASE | re.MULTILINE)


def problems(
    folder: Path, dockerfile: str, included: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Return the problems of a context, each with a hint; empty if an image could be built of it.

    ``included`` are names that the context has beside the folder's own.
    """
    file = folder / dockerfile
    if not file.is_file():
        yield f"has no {dockerfile}", "name the folder that holds it, or set dockerfile"
        return
    if not is_inside(folder, dockerfile):
        yield f"its {dockerfile} is a link out of the folder", "copy what it leads to"
        return
    text = JOINED.sub(" ", COMMENT.sub("", file.read_text("utf-8", errors="replace")))
    if not FROM.search(text):
        yield f"its {dockerfile} has no FROM", "begin with FROM and a base image"
    for source in _copied(text):
        if source.lstrip("/").partition("/")[0] in included:
            continue
        if not (folder / source.lstrip("/")).exists():
            yield (
                f"its {dockerfile} copies {source}, which is not there",
                "paths start in the folder; include puts other folders into the context",
            )


def is_inside(folder: Path, dockerfile: str) -> bool:
    """Return whether the folder has the file itself, and no link to one elsewhere."""
    file = folder / dockerfile
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())


def _copied(text: str) -> Iterator[str]:
    """Plain paths that COPY and ADD take from the context: no patterns, variables or addresses."""
    for line in COPY.findall(text):
        words = line.split()
        if line.lstrip().startswith("[") or any(word.startswith("--from") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")][:-1]
        yield from (path for path in paths if not re.search(r"[*?\[$<]|://|@", path))


@dataclass(frozen=True, slots=True)
class PinRecord:
    """One image that a stack file pins."""

    stack: str
    name: str
    uri: str
    """The image without digest."""
    digest: str
    context: str
    """The folder, where the file has one."""
    built_from: str
    """``context-…``, where the file says it."""


def records(root: Path) -> list[PinRecord]:
    """All pins of all stack files in ``root``, in order of stacks and names."""
    return [
        record
        for stack in project_files.names(root)
        for record in _records(stack, _config(root / project_files.file_name(stack)))
    ]


def digests_in(repository: str, found: list[PinRecord]) -> tuple[str, ...]:
    """Digests among the pins that are in ``repository``, sorted, each once."""
    return tuple(sorted({each.digest for each in found if each.uri.startswith(f"{repository}/")}))


def digests_of(settings: Settings) -> set[str]:
    """Digests of the stack's own repository that its settings pin."""
    digests = {image.digest for image in settings.images.values() if image.digest}
    return digests - {PLACEHOLDER}


def _records(stack: str, config: Mapping[str, Any]) -> Iterator[PinRecord]:
    project, region = config.get("gcp:project"), config.get("gcp:region")
    images = config.get("vertex-training:images", config.get("images"))
    if not isinstance(images, dict):
        return
    names = Names(str(project), "", str(region), stack, _repository(config))
    for name, given in sorted((str(key), value) for key, value in images.items()):
        try:
            image = Image.model_validate(given)
        except ValueError:
            continue
        uri, _, outside = (image.uri or "").partition("@")
        digest = outside or image.digest or ""
        if digest and digest != PLACEHOLDER and (uri or (project and region)):
            where = uri or names.image(name)
            context, built_from = image.context or "", image.built_from or ""
            yield PinRecord(stack, name, where, digest, context, built_from)


def _repository(config: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The repository that a stack file gives by name; none if it gives none."""
    registry = config.get("vertex-training:registry", config.get("registry"))
    try:
        given = Registry.model_validate(registry or {})
    except ValueError:
        return {}
    name = given.existing or given.name
    return {("registry", ""): name} if name else {}


def _config(file: Path) -> dict[str, Any]:
    try:
        content = document.read(file.read_bytes(), file.name).root.plain()
    except (OSError, ConfigError):
        return {}
    config = content.get("config") if isinstance(content, dict) else None
    return config if isinstance(config, dict) else {}
