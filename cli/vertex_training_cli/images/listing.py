"""``vt images list``: what a stack file pins, and what its contexts hold. No network."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from vertex_training.images import pins
from vertex_training.images.pins import Pin
from vertex_training.settings.model import Settings

#: State of a pin -> words for a person.
WORDS: Final = {
    "current": "built from its context",
    "behind": "behind its context",
    "unknown": "unknown origin",
    "missing": "not built",
    "fixed": "by digest",
}


def show(settings: Settings, root: Path, *, as_json: bool) -> None:
    """Print the images of a stack.

    Raises:
        ConfigError: a context cannot be read.
    """
    from vertex_training_cli.console import console, json_text, table

    found = [pins.pin_of(settings, name, root) for name in settings.images]
    if as_json:
        print(json_text([_facts(pin) for pin in found]))
        return
    if not found:
        print(f"stack {settings.stack} has no images")
        return
    rows = (
        (
            pin.name,
            WORDS[pin.state],
            pin.image.context or "",
            pin.digest.removeprefix("sha256:")[:12],
        )
        for pin in found
    )
    console().print(table("NAME", "STATE", "CONTEXT", "DIGEST", rows=rows))


def _facts(pin: Pin) -> dict[str, Any]:
    return {
        "name": pin.name,
        "state": pin.state,
        "image": pin.uri,
        "digest": pin.digest,
        "context": pin.image.context or "",
        "builtFrom": pin.image.built_from or "",
        "contextNow": pin.tag,
    }
