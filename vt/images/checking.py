"""``vt images check``: the pinned images as their registries have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from infra.errors import CommandError, RegistryError, did_you_mean
from infra.images import pins
from infra.images.identity import PLATFORM
from infra.images.pins import PLACEHOLDER, Pin
from infra.settings.model import Settings
from vt.images import labels, registry

Level = Literal["ok", "warning", "error"]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What there is to say of one image."""

    name: str
    level: Level
    text: str
    digest: str = ""
    revision: str = ""
    context: str = ""


def show(settings: Settings, names: Sequence[str], root: Path, *, as_json: bool) -> bool:
    """Print what was found; returns whether an image cannot be run.

    Raises:
        CommandError: the stack has no image of a name.
        ConfigError: a context cannot be read.
    """
    from vt.console import console, json_text, table

    for name in names:
        if name not in settings.images:
            text = f"stack {settings.stack} has no image {name!r}."
            raise CommandError(text, did_you_mean(name, settings.images))
    chosen = names or list(settings.images)
    found = [
        finding
        for name in chosen
        for finding in findings(settings, pins.pin_of(settings, name, root))
    ]
    if as_json:
        print(json_text([dataclasses.asdict(finding) for finding in found]))
    else:
        rows = ((one.level, one.name, one.text) for one in found)
        console().print(table("LEVEL", "IMAGE", "FINDING", rows=rows))
    return any(finding.level == "error" for finding in found)


def findings(settings: Settings, pin: Pin) -> list[Finding]:
    """What is wrong with one image; one line that it is in order if nothing is."""
    command = f"vt images build {pin.name} --stack {settings.stack}"
    if pin.digest in ("", PLACEHOLDER):
        hint = command if pin.tag else f"vt promote {pin.name} --from OTHER --to {settings.stack}"
        return [Finding(pin.name, "error", f"no digest is pinned: {hint}")]
    found = []
    if pin.state in ("behind", "unknown"):
        text = "the pin is behind its context" if pin.state == "behind" else "of unknown origin"
        found.append(Finding(pin.name, "warning", f"{text}: {command}", pin.digest))
    return [*found, _in_registry(pin, command)]


def _in_registry(pin: Pin, command: str) -> Finding:
    try:
        at, path = registry.registry_of(pin.uri)
        facts = at.facts(path, pin.digest)
    except RegistryError as failed:
        return Finding(pin.name, "error", f"not looked at: {failed}", pin.digest)
    if facts is None:
        way = command if pin.tag else "promote it once more"
        return Finding(pin.name, "error", f"the digest is not in {pin.uri}: {way}", pin.digest)
    if PLATFORM not in facts.platforms:
        text = f"is for {', '.join(facts.platforms)}; Vertex AI runs {PLATFORM}: {command}"
        return Finding(pin.name, "error", text, pin.digest)
    origin = labels.origin(facts.labels)
    shown = f" of {origin}" if origin.context and origin.revision else ""
    text = f"in order: {PLATFORM}, {facts.size / 1e6:,.0f} MB{shown}"
    return Finding(pin.name, "ok", text, pin.digest, origin.revision, origin.context)
