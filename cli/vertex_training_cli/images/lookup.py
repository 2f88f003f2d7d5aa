"""Looks up images in their registries, concurrently and within a time limit.

Nothing is started, and a stack of the local cloud never asks Google. A registry that does not
answer, or may not be read, is a reason why an image was not looked at, and no mistake.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from vertex_training import naming
from vertex_training.errors import CommandError, Problem, RegistryError
from vertex_training.images import pins
from vertex_training.images.context import PLATFORM
from vertex_training.images.pins import PLACEHOLDER, Pin
from vertex_training.settings.model import Settings
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import documents, registry
from vertex_training_cli.images.documents import ImageFacts
from vertex_training_cli.process import run_within

#: Maximum seconds of all lookups of one command together.
SECONDS: Final = 20.0
#: Maximum number of images that one command looks up.
MOST: Final = 100
_TAG_SHOWN: Final = len("context-") + 12

Rule = Literal["image-missing", "image-platform", "image-not-looked-at"]


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one image lookup."""

    facts: ImageFacts | None = None
    """Properties of the image; None if it does not exist or was not looked up."""
    reason: str = ""
    """Reason why the image was not looked up; else empty."""

    @property
    def trouble(self) -> tuple[Rule, str] | None:
        """Return why a job cannot run the image, or why the image was not checked; else None."""
        if self.reason:
            return "image-not-looked-at", f"image not checked: {self.reason}"
        if self.facts is None:
            return "image-missing", "the registry does not have this digest"
        if PLATFORM not in self.facts.platforms:
            platforms = ", ".join(self.facts.platforms)
            return "image-platform", f"the image is for {platforms}; Vertex AI needs {PLATFORM}"
        return None


def look(uris: Iterable[str], *, is_local: bool, seconds: float = SECONDS) -> Mapping[str, Look]:
    """Look up images (``NAME@DIGEST``). ``is_local``: the stack is a stack of the local cloud."""
    unique = list(dict.fromkeys(uris))
    looks: dict[str, Look] = {
        uri: Look(reason="too many images for one check") for uri in unique[MOST:]
    }
    by_host: dict[str, list[str]] = {}
    for uri in unique[:MOST]:
        if (known := _known(uri, is_local)) is not None:
            looks[uri] = known
        else:
            by_host.setdefault(uri.partition("/")[0], []).append(uri)
    run_within(seconds, [partial(_look_at, some, looks) for some in by_host.values()])
    late = Look(reason=f"no response within {seconds:.0f} s")
    return {uri: looks.get(uri, late) for uri in unique}


def _known(uri: str, is_local: bool) -> Look | None:
    """Return the result for an image that needs no request to a registry, else None."""
    name, _, digest = uri.partition("@")
    match = registry.IMAGE.match(name)
    if match is None or not is_digest(uri):
        return Look(reason="the reference is not an Artifact Registry image with a digest")
    if digest == PLACEHOLDER:
        return Look()
    if naming.is_local(match["project"]) != is_local:
        return Look(reason=f"project {match['project']} is not in the same cloud as the stack")
    return None


def _look_at(uris: list[str], looks: dict[str, Look]) -> None:
    """Look up images of one registry, one after the other."""
    for uri in uris:
        name, _, digest = uri.partition("@")
        try:
            at, path = registry.registry_of(name)
            looks[uri] = Look(at.facts(path, digest))
        except RegistryError as failed:
            looks[uri] = Look(reason=str(failed))


@dataclass(frozen=True, slots=True)
class ImageFinding:
    """One finding about one image."""

    name: str
    level: Literal["ok", "warning", "error"]
    text: str
    digest: str = ""
    revision: str = ""
    context: str = ""
    rule: str = ""
    """Rule id of the mistake; empty if the image is fine."""


def findings(settings: Settings, names: Iterable[str], root: Path) -> list[ImageFinding]:
    """Return the findings of images, in order; an image without mistakes has one of level ``ok``.

    Raises:
        ConfigError: a context cannot be read.
    """
    chosen = [pins.pin_of(settings, name, root) for name in names]
    pinned = [pin for pin in chosen if pin.digest not in ("", PLACEHOLDER)]
    looks = look([f"{pin.uri}@{pin.digest}" for pin in pinned], is_local=settings.is_local)
    return [
        finding
        for pin in chosen
        for finding in _findings(settings, pin, looks.get(f"{pin.uri}@{pin.digest}"))
    ]


def problems(settings: Settings, root: Path) -> list[Problem]:
    """Return registry findings on the images of a stack file as problems.

    Images that are behind their context need no look: ``vertex_training.images.pins`` reports them.

    Raises:
        ConfigError: a context cannot be read.
    """
    return [
        Problem(
            finding.text,
            path=("images", finding.name),
            rule=finding.rule,
            level="warning" if finding.rule == "image-not-looked-at" else finding.level,
        )
        for finding in findings(settings, settings.images, root)
        if finding.level != "ok" and finding.rule not in ("image-behind", "image-unpinned")
    ]


def _findings(settings: Settings, pin: Pin, look_: Look | None) -> Iterator[ImageFinding]:
    command = f"vt images build {pin.name} --stack {settings.stack}"
    if look_ is None:
        hint = command if pin.tag else f"vt promote {pin.name} --from OTHER --to {settings.stack}"
        yield ImageFinding(
            pin.name, "error", f"no digest is pinned. Run {hint}", rule="image-unpinned"
        )
        return
    if pin.state in ("behind", "unknown"):
        text = (
            ("the image is older than its context")
            if pin.state == "behind"
            else "the origin of the image is unknown"
        )
        text = f"{text}: {command}"
        yield ImageFinding(pin.name, "warning", text, pin.digest, rule="image-behind")
    if look_.trouble:
        rule, text = look_.trouble
        if rule == "image-missing":
            way = "choose another image" if pin.image.uri else command if pin.tag else (
                "promote it again")  # fmt: skip
            text = f"{pin.uri} does not have this digest: {way}"
        elif rule == "image-platform" and pin.tag:
            text = f"{text}: {command}"
        yield ImageFinding(pin.name, "error", text, pin.digest, rule=rule)
    elif look_.facts:
        origin = documents.origin(look_.facts.labels)
        shown = f" of {origin}" if origin.context and origin.revision else ""
        text = f"ok: {PLATFORM}, {look_.facts.size / 1000000.0:,.0f} MB{shown}"
        yield ImageFinding(pin.name, "ok", text, pin.digest, origin.revision, origin.context)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Image properties that a review shows beside the plan."""

    origins: Mapping[str, str] = field(default_factory=dict)
    """Origins of images by their full names."""
    problems: tuple[Problem, ...] = ()
    """Problems of jobs to submit whose image is missing or has the wrong platform."""
    unseen: tuple[str, ...] = ()
    """Images of jobs to submit that could not be looked up, with the reasons."""


def for_review(
    ref: StackRef, jobs: Mapping[str, Sequence[str]], shown: Sequence[str], *, offline: bool
) -> Lookup:
    """Look up images for a review; offline, read only the stack files.

    ``jobs`` are names of jobs that would be submitted, by the image that they run; ``shown`` are
    images of which the review says where they came from.
    """
    known = {uri: names for uri, names in jobs.items() if is_digest(uri)}
    images = [] if offline else [*known, *filter(is_digest, shown)]
    if images and ref.is_local and not os.environ.get(registry.EMULATOR):
        with suppress(CommandError):  # it does not run: each image says so
            registry.connect(ref, lambda _: None, start=False)
    return judge(known, shown, look(images, is_local=ref.is_local), ref.root)


def judge(
    jobs: Mapping[str, Sequence[str]],
    shown: Iterable[str],
    looks: Mapping[str, Look],
    root: Path,
) -> Lookup:
    """Return the properties and problems that follow from the lookup results ``looks``."""
    problems, unseen = [], []
    for uri, names in jobs.items():
        name = uri.partition("@")[0].rpartition("/")[2]
        trouble = looks[uri].trouble if uri in looks else None
        if trouble and looks[uri].reason:
            unseen.append(f"{name}: {looks[uri].reason}")
        elif trouble:
            rule, text = trouble
            what = f"image {name} of {', '.join(names)}: {text}"
            problems.append(Problem(what, uri, "run `vt images check`", rule=rule))
    return Lookup(origins_of(root, shown, looks), tuple(problems), tuple(unseen))


def is_digest(uri: str) -> bool:
    """Return True for an Artifact Registry image with a digest."""
    name, _, digest = uri.partition("@")
    return bool(registry.IMAGE.match(name) and registry.DIGEST.match(digest))


def origins_of(root: Path, uris: Iterable[str], looks: Mapping[str, Look]) -> dict[str, str]:
    """Return the origin of each image as text.

    What was not looked at comes with the reason, and with what a stack file records: a promoted
    digest is pinned with its folder in the file that it was promoted from.
    """
    unique, recorded = list(dict.fromkeys(uris)), dict[str, str]()
    for record in pins.records(root) if unique else ():
        if record.context:
            what = " ".join(filter(None, (record.context, record.built_from[:_TAG_SHOWN])))
            recorded.setdefault(record.digest, f"{what}, recorded in Pulumi.{record.stack}.yaml")
    return {uri: _origin(uri, looks.get(uri), recorded) for uri in unique}


def _origin(uri: str, look_: Look | None, recorded: Mapping[str, str]) -> str:
    if look_ is None or look_.reason:
        reason = look_.trouble[1] if look_ and look_.trouble else "not checked"
        return "; ".join(filter(None, (recorded.get(uri.partition("@")[2], ""), reason)))
    if look_.facts is None:
        return "image missing in the registry"
    return str(documents.origin(look_.facts.labels)) or (
        "the image's labels name no source folder and no commit"
    )
