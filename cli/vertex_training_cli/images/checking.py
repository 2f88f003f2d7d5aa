"""``vt images check``: the pinned images as their registries have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from vertex_training.errors import CommandError, Problem, did_you_mean
from vertex_training.images import pins
from vertex_training.images.identity import PLATFORM
from vertex_training.images.pins import PLACEHOLDER, Pin
from vertex_training.settings.model import Settings
from vertex_training_cli.images import lookup
from vertex_training_cli.images.documents import origin as origin_of
from vertex_training_cli.images.lookup import Look

Level = Literal["ok", "warning", "error"]
#: Rule of an image that nobody could look at.
NOT_LOOKED_AT: Final = "image-not-looked-at"


@dataclasses.dataclass(frozen=True, slots=True)
class ImageFinding:
    """What there is to say of one image."""

    name: str
    level: Level
    text: str
    digest: str = ""
    revision: str = ""
    context: str = ""
    rule: str = ""
    """Id of what is wrong; empty if nothing is."""


def show(settings: Settings, names: Sequence[str], root: Path, *, as_json: bool) -> bool:
    """Print what was found; returns whether an image cannot be run.

    Raises:
        CommandError: the stack has no image of a name.
        ConfigError: a context cannot be read.
    """
    from vertex_training_cli.console import console, json_text, table

    for name in names:
        if name not in settings.images:
            text = f"stack {settings.stack} has no image {name!r}."
            raise CommandError(text, did_you_mean(name, settings.images))
    chosen = [pins.pin_of(settings, name, root) for name in names or settings.images]
    found = findings(settings, chosen)
    if as_json:
        print(json_text([dataclasses.asdict(finding) for finding in found]))
    else:
        rows = ((one.level, one.name, one.text) for one in found)
        console().print(table("LEVEL", "IMAGE", "FINDING", rows=rows))
    return any(finding.level == "error" for finding in found)


def findings(settings: Settings, chosen: Sequence[Pin]) -> list[ImageFinding]:
    """What is wrong with images, in their order; a line that one is in order if nothing is."""
    wanted = [pin for pin in chosen if pin.digest not in ("", PLACEHOLDER)]
    looks = lookup.look(map(_reference, wanted), is_local=settings.is_local)
    return [
        finding
        for pin in chosen
        for finding in _findings(settings, pin, looks.get(_reference(pin)))
    ]


def problems(settings: Settings, root: Path) -> list[Problem]:
    """What registries say of the images of a stack file, with paths below the namespace.

    That an image is behind its context is left out: it needs no look
    (``vertex_training.images.pins``).

    Raises:
        ConfigError: a context cannot be read.
    """
    chosen = [pins.pin_of(settings, name, root) for name in settings.images]
    return [
        Problem(
            found.text,
            path=("images", found.name),
            rule=found.rule,
            level="warning" if found.rule == NOT_LOOKED_AT else found.level,
        )
        for found in findings(settings, chosen)
        if found.level != "ok" and found.rule not in ("image-behind", "image-unpinned")
    ]


def _reference(pin: Pin) -> str:
    return f"{pin.uri}@{pin.digest}"


def _findings(settings: Settings, pin: Pin, found: Look | None) -> Iterator[ImageFinding]:
    command = f"vt images build {pin.name} --stack {settings.stack}"
    if found is None:
        hint = command if pin.tag else f"vt promote {pin.name} --from OTHER --to {settings.stack}"
        yield ImageFinding(pin.name, "error", f"no digest is pinned: {hint}", rule="image-unpinned")
        return
    if pin.state in ("behind", "unknown"):
        text = "the pin is behind its context" if pin.state == "behind" else "of unknown origin"
        yield ImageFinding(
            pin.name, "warning", f"{text}: {command}", pin.digest, rule="image-behind"
        )
    if found.trouble:
        yield _trouble(pin, command, *found.trouble)
        return
    if found.facts:
        origin = origin_of(found.facts.labels)
        shown = f" of {origin}" if origin.context and origin.revision else ""
        text = f"in order: {PLATFORM}, {found.facts.size / 1e6:,.0f} MB{shown}"
        yield ImageFinding(pin.name, "ok", text, pin.digest, origin.revision, origin.context)


def _trouble(pin: Pin, command: str, rule: str, text: str) -> ImageFinding:
    if rule == "image-missing":
        way = "take another one" if pin.image.uri else command if pin.tag else "promote it again"
        text = f"the digest is not in {pin.uri}: {way}"
    elif rule == "image-platform":
        text = f"{text}: {command}" if pin.tag else text
    return ImageFinding(pin.name, "error", text, pin.digest, rule=rule)
