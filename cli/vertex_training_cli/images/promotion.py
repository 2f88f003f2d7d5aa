"""``vt promote``: the same bytes in another stack. Nothing is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vertex_training.errors import CommandError, did_you_mean
from vertex_training.images.pins import PLACEHOLDER
from vertex_training.settings.model import Settings
from vertex_training_cli.images import registry, stack_file


@dataclass(frozen=True, slots=True)
class Promotion:
    """One image on its way from a stack to another."""

    name: str
    source: str
    """Full name without digest in the first stack."""
    target: str
    """The same in the second one."""
    digest: str
    built_from: str
    """``context-…`` it was built from; empty if the first stack does not say."""
    has_context: bool
    """Whether the second stack builds it, too: its file says what the digest was built from."""

    @property
    def tag(self) -> str:
        """The tag of the copy: the repository's clean-up deletes images that have none."""
        digits = self.digest.removeprefix("sha256:")[: registry.TAG_DIGITS]
        return self.built_from or f"digest-{digits}"


def plan(source: Settings, target: Settings, names: Sequence[str]) -> list[Promotion]:
    """What is to be copied.

    Raises:
        CommandError: the first stack does not pin one of the names, or both stacks are one.
    """
    if source.stack == target.stack:
        raise CommandError(f"{source.stack} is both --from and --to.")
    return [_promotion(source, target, name) for name in dict.fromkeys(names)]


def _promotion(source: Settings, target: Settings, name: str) -> Promotion:
    image = source.images.get(name)
    if image is None:
        text = f"stack {source.stack} has no image {name!r}."
        raise CommandError(text, did_you_mean(name, source.images))
    there = target.images.get(name)
    if image.uri or (there and there.uri):
        stack = source.stack if image.uri else target.stack
        text = f"image {name} of stack {stack} is one from outside (uri)."
        raise CommandError(text, "copy the uri by hand.")
    if image.digest in (None, PLACEHOLDER):
        text = f"image {name} of stack {source.stack} was not built."
        raise CommandError(text, f"vt images build {name} --stack {source.stack}")
    return Promotion(
        name,
        source.names.image(name),
        target.names.image(name),
        str(image.digest),
        image.built_from or "",
        bool(there and there.context),
    )


def run(promotions: Sequence[Promotion], root: Path, stack: str) -> Iterator[str]:
    """Copy each image, then write its digest into the file of ``stack``; yields a line for each.

    Raises:
        CommandError: an image is not in its registry, or a registry refused.
        ConfigError: the stack file cannot be edited in place.
    """
    for each in promotions:
        origin, path = registry.registry_of(each.source)
        goal, target = registry.registry_of(each.target)
        sent = origin.copy(path, each.digest, goal, target, (each.tag,))
        values = {"digest": each.digest}
        if each.has_context and each.built_from:
            values["builtFrom"] = each.built_from
        changed = stack_file.write_pins(root, stack, {each.name: values})
        what = "promoted" if changed else "unchanged"
        yield f"{each.name}: {what} {each.digest} ({sent:,} bytes copied)"
