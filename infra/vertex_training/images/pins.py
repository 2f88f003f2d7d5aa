"""Which image a stack pins, and whether it is behind its context. Reads the checkout alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from vertex_training.errors import ConfigError, Problem
from vertex_training.images import identity
from vertex_training.images.identity import Source
from vertex_training.settings.model import Image, Settings

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
        """How the pin and the context compare."""
        if not self.tag:
            return "fixed"
        if self.digest in ("", PLACEHOLDER):
            return "missing"
        if self.image.built_from is None:
            return "unknown"
        return "current" if self.image.built_from == self.tag else "behind"


def source_of(image: Image) -> Source | None:
    """What an image is built from; None if it is only pinned."""
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
