"""Look up images in their registries, concurrently and within a time limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from localgcp.home import REGISTRY
from vertex_training import naming
from vertex_training.customjob.protocol.prerequisites import IMAGE
from vertex_training.errors import CommandError, Problem, RegistryError
from vertex_training.images import pins
from vertex_training.images.context import PLATFORM
from vertex_training.images.pins import PLACEHOLDER, Pin
from vertex_training.settings.model import Settings
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import documents, registry
from vertex_training_cli.images.documents import ImageFacts
from vertex_training_cli.process import run_within

#: Maximum duration of all lookups of a command, in seconds.
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
        """Return the rule and the reason if a job cannot run the image or it was not checked."""
        if self.reason:
            return "image-not-looked-at", f"image not checked: {self.reason}"
        if self.facts is None:
            return "image-missing", "the registry does not have this digest"
        if PLATFORM not in self.facts.platforms:
            platforms = ", ".join(self.facts.platforms)
            return "image-platform", f"the image is for {platforms}; Vertex AI needs {PLATFORM}"
        return None


def look(uris: Iterable[str], *, is_local: bool, seconds: float = SECONDS) -> Mapping[str, Look]:
    """Look up images (``NAME@DIGEST``) of a local stack, or of a stack of Google Cloud."""
    unique = list(dict.fromkeys(uris))
    looks: dict[str, Look] = {
        uri: Look(reason="too many images for one check") for uri in unique[MOST:]
    }
    by_host: dict[str, list[str]] = {}
    for uri in unique[:MOST]:
        if (known := _look_without_request(uri, is_local)) is not None:
            looks[uri] = known
        else:
            by_host.setdefault(uri.partition("/")[0], []).append(uri)
    run_within(seconds, [partial(_look_up, some, looks) for some in by_host.values()])
    late = Look(reason=f"no response within {seconds:.0f} s")
    return {uri: looks.get(uri, late) for uri in unique}


def _look_without_request(uri: str, is_local: bool) -> Look | None:
    match = IMAGE.fullmatch(uri)
    if match is None or not match["digest"]:
        return Look(reason="the reference is not an Artifact Registry image with a digest")
    if match["digest"] == PLACEHOLDER:
        return Look()
    project = match["path"].partition("/")[0]
    if naming.is_local(project) != is_local:
        return Look(reason=f"project {project} is not in the same cloud as the stack")
    return None


def _look_up(uris: list[str], looks: dict[str, Look]) -> None:
    for uri in uris:
        name, _, digest = uri.partition("@")
        try:
            looks[uri] = Look(registry.remote_image(name).facts(digest))
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
    """Rule id of the mistake; empty for a finding ``ok``."""


def findings(settings: Settings, names: Iterable[str], root: Path) -> list[ImageFinding]:
    """Return the findings of images, in order. An image without mistakes has a finding ``ok``."""
    chosen = [pins.pin_of(settings, name, root) for name in names]
    pinned = [pin for pin in chosen if pin.digest not in ("", PLACEHOLDER)]
    looks = look([f"{pin.uri}@{pin.digest}" for pin in pinned], is_local=settings.is_local)
    return [
        finding
        for pin in chosen
        for finding in _findings(settings, pin, looks.get(f"{pin.uri}@{pin.digest}"))
    ]


def problems(settings: Settings, root: Path) -> list[Problem]:
    """Return the registry findings on the images of a stack file as problems."""
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
            pin.name, "error", f"no digest is pinned: run `{hint}`", rule="image-unpinned"
        )
        return
    if pin.state in ("behind", "unknown"):
        is_old = pin.state == "behind"
        what = "image is older than its context" if is_old else "origin of the image is unknown"
        text = f"the {what}: run `{command}`"
        yield ImageFinding(pin.name, "warning", text, pin.digest, rule="image-behind")
    if look_.trouble:
        rule, text = look_.trouble
        if rule == "image-missing":
            build = f"run `{command}`" if pin.tag else "promote the image again"
            way = "choose another image" if pin.image.uri else build
            text = f"{pin.uri} does not have this digest: {way}"
        elif rule == "image-platform" and pin.tag:
            text = f"{text}: run `{command}`"
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
    """Problems of new jobs whose image is missing or has the wrong platform."""
    unseen: tuple[str, ...] = ()
    """Images of new jobs that could not be looked up, with the reasons."""


def for_review(
    ref: StackRef, jobs: Mapping[str, Sequence[str]], shown: Sequence[str], *, offline: bool
) -> Lookup:
    """Look up images for a review. With ``offline``, read only the stack files.

    ``jobs`` has the names of new jobs by image. ``shown`` are images whose origin the review shows.
    """
    known = {uri: names for uri, names in jobs.items() if is_digest(uri)}
    images = [] if offline else [*known, *filter(is_digest, shown)]
    if images:
        with suppress(CommandError):  # Without the local cloud, each lookup reports the reason.
            ref.connect_clients(address=REGISTRY)
    return judge(known, shown, look(images, is_local=ref.is_local), ref.root)


def judge(
    jobs: Mapping[str, Sequence[str]], shown: Iterable[str], looks: Mapping[str, Look], root: Path
) -> Lookup:
    """Return the image properties and problems that follow from the lookup results ``looks``."""
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
    match = IMAGE.fullmatch(uri)
    return match is not None and bool(match["digest"])


def origins_of(root: Path, uris: Iterable[str], looks: Mapping[str, Look]) -> dict[str, str]:
    """Return the origin of each image as text, from its labels or from a stack file."""
    unique, recorded = list(dict.fromkeys(uris)), dict[str, str]()
    for pin in pins.pins_below(root) if unique else ():
        if pin.image.context:
            built_from = (pin.image.built_from or "")[:_TAG_SHOWN]
            what = " ".join(filter(None, (pin.image.context, built_from)))
            recorded.setdefault(pin.digest, f"{what}, recorded in Pulumi.{pin.stack}.yaml")
    origins = dict[str, str]()
    for uri in unique:
        look_ = looks.get(uri)
        if look_ is None or look_.reason:
            reason = look_.trouble[1] if look_ and look_.trouble else "not checked"
            texts = (recorded.get(uri.partition("@")[2], ""), reason)
            origins[uri] = "; ".join(filter(None, texts))
        elif look_.facts is None:
            origins[uri] = "image missing in the registry"
        else:
            without = "the image's labels name no source folder and no commit"
            origins[uri] = str(documents.origin(look_.facts.labels)) or without
    return origins
