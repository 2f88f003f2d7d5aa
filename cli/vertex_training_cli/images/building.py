"""Build images, or copy them from another stack, and pin their digests in the stack file.

Builds of the same context on a machine run one at a time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from localgcp.home import cache_dir
from localgcp.system.processes import git_command, git_variables
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import (
    CommandError,
    ConfigError,
    ImageBuildError,
    Location,
    Problem,
    UnknownNameError,
    did_you_mean,
)
from vertex_training.images import context as contexts
from vertex_training.images import pins
from vertex_training.images.context import Source
from vertex_training.located_yaml.editing import set_value
from vertex_training.settings import project_files
from vertex_training.settings.model import Settings
from vertex_training.stack import SCHEMA
from vertex_training.stack_rules import files
from vertex_training_cli.console import plain, print_line, print_status
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.paths import link_out
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import programs, registry
from vertex_training_cli.images.documents import CONTEXT, REVISION
from vertex_training_cli.images.programs import PROGRAMS, SERVICE, Build, Engine

#: Time between two attempts to lock a folder, in seconds.
_POLL: Final = 0.2
#: Labels of an image: https://github.com/opencontainers/image-spec/blob/main/annotations.md
_SOURCE: Final = "org.opencontainers.image.source"
_TITLE: Final = "org.opencontainers.image.title"
_BUILT_FROM: Final = "vertex-training.built-from"
#: Suffix of a commit if its folder had uncommitted changes.
_DIRTY: Final = "-dirty"
_GIT_SECONDS: Final = 10
#: Number of digits in the tag ``digest-…`` of a promoted image.
_TAG_DIGITS: Final = 32


def choose_engine(name: str | None, ref: StackRef) -> Engine:
    """Return engine ``name``; by default Cloud Build, or a program for the local cloud."""
    known = (*PROGRAMS, SERVICE)
    if name and name not in known:
        raise UnknownNameError(f"unknown engine {name!r}.", did_you_mean(name, known))
    if name != SERVICE and (name or ref.is_local):
        return programs.first_installed(*([name] if name else PROGRAMS))
    # The import of Google's client takes a second.
    from vertex_training_cli.images.cloud_build import CloudBuildEngine

    return CloudBuildEngine(ref.project, ref.region)


def check_target(ref: StackRef, trusted: Path | None) -> None:
    """Refuse a build if project or region of the stack differ from the checkout ``trusted``.

    A branch can change the stack file. In CI, an unreviewed branch must not choose another project,
    or the local cloud, whose engine would run the branch's code on the CI machine.
    """
    if trusted is None:
        return
    trusted_stack = stacks.find_unchecked(trusted, ref.stack)
    if project_files.file_of(ref.root, ref.stack).is_symlink():
        name = project_files.file_name(ref.stack)
        raise CommandError(f"{name} is a symbolic link. Replace the link by a regular file.")
    if (ref.project, ref.region) != (trusted_stack.project, trusted_stack.region):
        text = f"stack {ref.stack} has project {ref.project} and region {ref.region} in this folder"
        raise CommandError(
            f"{text}, but project {trusted_stack.project} and region {trusted_stack.region} in "
            f"{trusted}."
        )


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of building one image."""

    name: str
    digest: str
    built: bool
    """True if an engine built the image; False if the registry already had it."""
    pinned: bool
    """True if the stack file changed."""
    seconds: float


@dataclass(frozen=True, slots=True)
class ImageBuilder:
    """Builds images of one stack file."""

    settings: Settings
    root: Path
    choose_engine: Callable[[], Engine]
    """Returns the engine; called only if an image must be built."""
    timeout: float
    """Maximum build time of one image, in seconds."""
    with_log: bool = False
    """True to print the lines of an engine's log."""
    writes_cache: bool = False
    """True if later builds may use the layers of this build as a cache."""

    def build(self, name: str) -> BuildResult:
        """Build one image unless the registry has it, and pin its digest in the stack file."""
        started = time.monotonic()
        for abandoned in _work_folders().glob("*"):
            if abandoned.is_dir() and (handle := _lock(abandoned)):
                _empty(abandoned)
                os.close(handle)
        source = pins.source_of(self.settings.images[name])
        assert source is not None  # names_to_build
        image = registry.remote_image(self.settings.names.image(name))
        context = source.read(self.root)
        context_id = contexts.identity(source, context)
        tag = contexts.tag(context_id)
        digest, built = image.digest_of(tag), False
        if digest is None:
            if image.lacks_repository():
                text = f"{name}: repository {image.path.rpartition('/')[0]} does not exist."
                hint = f"create the repository with `vt up --stack {self.settings.stack}`."
                raise CommandError(text, hint)
            with _work_folder(f"{image.path}@{context_id}", self.timeout) as folder:
                digest = image.digest_of(tag)
                if digest is None:
                    secrets = files.scan_context(self.settings, name, context)
                    if secrets.note:
                        print_status(f"{name}: {secrets.note}")
                    if secrets.problems:
                        raise ConfigError(secrets.problems)
                    archive = folder / "context.tar"
                    _write_archive(source, context_id, self.root, archive)
                    digest, built = self._build(name, source, context_id, archive), True
        values = {"digest": digest, "builtFrom": tag}
        pinned = write_pins(self.root, self.settings.stack, name, values)
        return BuildResult(name, digest, built, pinned, time.monotonic() - started)

    def _build(self, name: str, source: Source, context_id: str, archive: Path) -> str:
        engine, build_args = self.choose_engine(), dict(source.build_args)
        print_status(f"{name}: building {source.context} with {engine.name}")
        if self.settings.is_local and engine.name != "docker":
            file = self.root / source.context / source.dockerfile
            for base in dict.fromkeys(programs.stand_ins(file, build_args).values()):
                print_status(
                    f"instead of {base}, the build uses a local base image of Debian packages with "
                    "the same release and Python version"
                )
        tag = contexts.tag(context_id)
        build = Build(
            name=name,
            archive=archive,
            context=source.context,
            dockerfile=source.dockerfile,
            build_args=build_args,
            target=source.target,
            image=self.settings.names.image(name),
            tag=tag,
            labels=labels_of(name, source.context, tag, self.root),
            identity=context_id,
            timeout=self.timeout,
            writes_cache=self.writes_cache,
        )
        write_log = (lambda line: print_line(plain(line))) if self.with_log else lambda _: None
        digest = engine.build(build, write_log)
        if not registry.DIGEST.match(digest):
            raise ImageBuildError(f"{name}: {engine.name} returned no digest of the image.")
        return digest


def known_names(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return the named images without duplicates; without names, all images of the stack."""
    for name in names:
        if name not in settings.images:
            text = f"stack {settings.stack} has no image {name!r}."
            raise UnknownNameError(text, did_you_mean(name, settings.images))
    return list(dict.fromkeys(names or settings.images))


def names_to_build(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return the named images, or without names all images with a context."""
    image_names = known_names(settings, names)
    for name in names:
        if settings.images[name].context is None:
            text = f"image {name} has no context in Pulumi.{settings.stack}.yaml."
            hint = f"run `vt promote {name} --from OTHER --to {settings.stack}`"
            raise UnknownNameError(text, hint)
    return [name for name in image_names if settings.images[name].context]


def _write_archive(source: Source, wanted: str, root: Path, archive: Path) -> None:
    try:
        changed = contexts.write_archive(source, source.read(root), archive) != wanted
    except OSError as failed:
        text = f"cannot copy the context {source.context}: {failed.strerror or failed}."
        raise CommandError(text) from None
    if changed:
        what = "a file of the context changed while it was read"
        location = Location(source.context)
        raise ConfigError([Problem(what, hint="run the command again", location=location)])


@contextmanager
def _work_folder(key: str, timeout: float) -> Iterator[Path]:
    """Yield an empty folder that only one process at a time can use; empty it at the end."""
    folder = _work_folders() / contexts.short(key)
    folder.mkdir(0o700, parents=True, exist_ok=True)
    end, waiting = time.monotonic() + timeout, False
    while not (handle := _lock(folder)):
        if not waiting:
            print_status("waiting for another build of the same context on this machine")
        waiting = True
        if time.monotonic() > end:
            text = "another build of the same context is still running."
            raise ImageBuildError(text, hint="wait for the other build, or raise --timeout.")
        time.sleep(_POLL)
    try:
        _empty(folder)
        yield folder
    finally:
        _empty(folder)
        os.close(handle)


def _work_folders() -> Path:
    with stacks.local_cloud_errors():
        return cache_dir() / "image-builds"


def _lock(folder: Path) -> int:
    """Lock a folder and return the file descriptor; 0 if another process holds the lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return 0
    return handle


def _empty(folder: Path) -> None:
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)


def labels_of(name: str, context: str, tag: str, root: Path) -> dict[str, str]:
    """Return the labels of an image; outside of a git checkout, without labels of a commit."""
    labels = {_TITLE: name, CONTEXT: context, _BUILT_FROM: tag}
    commit = _git(root, "rev-parse", "HEAD")
    if commit:
        changed = _git(root, "status", "--porcelain", "--", context)
        labels[REVISION] = f"{commit}{_DIRTY}" if changed else commit
    if remote := _git(root, "config", "--get", "remote.origin.url"):
        labels[_SOURCE] = _without_credentials(remote)
    return labels


def _git(root: Path, *arguments: str) -> str:
    command = git_command(root, *arguments)
    try:
        ran = subprocess.run(
            command, env=git_variables(), capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace").strip() if ran.returncode == 0 else ""


def _without_credentials(remote: str) -> str:
    if "://" not in remote:
        return remote.rpartition("@")[2]
    parts = urlsplit(remote)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def write_pins(root: Path, stack: str, name: str, pins: Mapping[str, str]) -> bool:
    """Set keys of an image in a stack file atomically; return True if the file changed."""
    named = project_files.file_of(root, stack)
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


def plan_promotions(source: Settings, target: Settings, names: Sequence[str]) -> list[Promotion]:
    """Return the images to copy."""
    promotions = list[Promotion]()
    for name in known_names(source, names):
        image, in_target = source.images[name], target.images.get(name)
        if image.uri or (in_target and in_target.uri):
            stack = source.stack if image.uri else target.stack
            text = f"image {name} of stack {stack} has a `uri` and is not built by a stack."
            raise CommandError(text, "copy the `uri` into the other stack file.")
        if image.digest is None or image.digest == pins.PLACEHOLDER:
            text = f"image {name} of stack {source.stack} is not built."
            raise CommandError(text, f"run `vt images build {name} --stack {source.stack}`")
        tag = image.built_from or f"digest-{image.digest.removeprefix('sha256:')[:_TAG_DIGITS]}"
        values = {"digest": image.digest}
        if image.built_from and in_target and in_target.context:
            values["builtFrom"] = image.built_from
        paths = source.names.image(name), target.names.image(name)
        promotions.append(Promotion(name, *paths, tag, values))
    return promotions


def promote(promotions: Sequence[Promotion], root: Path, stack: str) -> Iterator[str]:
    """Copy each image, then pin its digest in the file of ``stack``. Yield a line per image."""
    for promotion in promotions:
        origin = registry.remote_image(promotion.source)
        goal = registry.remote_image(promotion.target)
        digest = promotion.pins["digest"]
        sent = origin.copy(digest, goal, (promotion.tag,))
        changed = write_pins(root, stack, promotion.name, promotion.pins)
        what = "promoted" if changed else "unchanged"
        yield f"{promotion.name}: {what} {digest} ({sent:,} bytes copied)"
