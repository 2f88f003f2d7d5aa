"""Runs the jobs of a local stack as images, if this machine can build and run images.

A job file ``NAME-image.yaml`` beside ``NAME.yaml`` is the same job as an image. A stack of its own
runs it: its file is written from the one of the stack that runs packages, and git ignores it. So no
tracked file gets a digest that only this machine has, and every command about the stack sees what
runs (decision 36).
"""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp import lifecycle
from localgcp.containers import host
from localgcp.containers import registry as registry_program
from localgcp.containers.requests import REPOSITORY
from localgcp.home import Home
from localgcp.home.environment import installer_environment
from localgcp.inventory.store import Store
from localgcp.runner.executors import uv_command
from localgcp.system.root_directory import RootDirectory
from vertex_training import stack as stacks_of_program
from vertex_training.errors import CommandError, ImageBuildError
from vertex_training.images import identity, pins
from vertex_training.images.pins import is_inside
from vertex_training.settings.model import Settings
from vertex_training.settings.project_files import file_name
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import building, engines, registry
from vertex_training_cli.images.engines import Engine

#: Suffix of the stack's name, and of the name of a job file.
SUFFIX: Final = "-image"
MARK: Final = "# Written by `vt local up"
#: Seconds for one image; the first build also downloads its base image and packages.
BUILD_SECONDS: Final = 3600.0
NAMESPACE: Final = stacks_of_program.SCHEMA.namespace
_IMAGE: Final = re.compile(r"\$\{images\.([a-z0-9-]{1,63})\}")
#: Option in a Dockerfile with which uv uses PyTorch's own index.
_TORCH_INDEX: Final = "--torch-backend"
_INSTALL: Final = "`make containers` installs missing programs, or lists the programs to install"
_PROBE_SECONDS: Final = 15.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageForm:
    """A stack whose jobs run in images."""

    stack: str
    jobs: tuple[str, ...]
    images: Mapping[str, str]
    """Image -> folder of its context."""
    config: Mapping[str, Any]
    """Content of the stack file, without digests."""

    def text(
        self, source: str, pinned: Mapping[str, Mapping[str, str]], without: Collection[str] = ()
    ) -> str:
        """Return the stack file with digests ``pinned`` and without sections ``without``."""
        config = copy.deepcopy(dict(self.config))
        for name, keys in pinned.items():
            config[f"{NAMESPACE}:images"][name] |= keys
        for section in without:
            del config[f"{NAMESPACE}:{section}"]
        head = (
            f"{MARK}` from Pulumi.{source}.yaml, overwritten by each run: edit "
            f"Pulumi.{source}.yaml instead.\n"
        )
        return head + yaml.safe_dump({"config": config}, sort_keys=False, allow_unicode=True)


def choose(home: Home, stack: str, bring_up: Callable[[str], int], report: Report) -> str:
    """Return the stack to deploy, with jobs as images if possible; else report why not.

    ``bring_up`` takes the name of a stack, and returns the exit code of ``pulumi up``.

    Raises:
        CommandError: the stack file is none, or the stack that runs images cannot be brought up.
        ConfigError: a context cannot be read.
    """
    ref = stacks.find(stack, home.repo)
    form = find_form(ref.root, ref.stack) if ref.is_local else None
    if form is None:
        return stack
    jobs = ", ".join(form.jobs)
    reason = missing(home) or _build(home, ref, form, bring_up, report)
    if reason:
        report(f"{jobs} will run as a Python package, not as an image: {reason}")
        return stack
    report(
        f"{jobs} will run as an image, in stack {form.stack}. To run packages instead of images: "
        "`make local NO_IMAGE=1`"
    )
    return form.stack


def find_form(root: Path, stack: str) -> ImageForm | None:
    """Return the stack that runs the jobs of a stack file as images; None if no job can run so.

    Raises:
        CommandError: there is no such stack file.
    """
    config = copy.deepcopy(stacks.read_stack_file(root, stack).get("config") or {})
    jobs, packages = (config.get(f"{NAMESPACE}:{key}") for key in ("jobs", "packages"))
    if not isinstance(jobs, dict) or not isinstance(packages, dict):
        return None
    images, changed = dict[str, str](), list[str]()
    for name, entry in jobs.items():
        file, form = _image_file(root, entry, packages)
        if form:
            entry["file"], images = file, images | form
            changed.append(str(name))
    if not changed:
        return None
    configured = config.get(f"{NAMESPACE}:images") or {}
    config[f"{NAMESPACE}:images"] = configured | {n: {"context": c} for n, c in images.items()}
    for name in images:
        if not any(f"${{packages.{name}}}" in _read(root, job) for job in jobs.values()):
            del packages[name]
    return ImageForm(f"{stack}{SUFFIX}", tuple(changed), images, config)


def _image_file(root: Path, entry: Any, packages: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the name of the job file that uses images, and each image's context folder."""
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return "", {}
    file = Path(entry["file"])
    other = file.with_name(f"{file.stem}{SUFFIX}{file.suffix}").as_posix()
    names = set(_IMAGE.findall(_read(root, {"file": other})))
    contexts = {name: _context(root, packages.get(name)) for name in names}
    return other, contexts if all(contexts.values()) else {}


def _context(root: Path, package: Any) -> str:
    """Return the folder of a package if it has a Dockerfile, else an empty string."""
    path = package.get("path") if isinstance(package, dict) else None
    return path if isinstance(path, str) and is_inside(root / path, "Dockerfile") else ""


def _read(root: Path, entry: Any) -> str:
    file = root / str(entry.get("file")) if isinstance(entry, dict) else root
    return file.read_text("utf-8", errors="replace") if file.is_file() else ""


def missing(home: Home) -> str:
    """Return a reason why this machine cannot build, store or run images; empty if it can."""
    if sys.platform != "linux":
        return "containers can use the network of this machine only on Linux"
    if registry_program.find_program() is None:
        return f"no container registry is installed ({_INSTALL})"
    try:
        engines.choose(None, "", "", is_local=True)
    except CommandError:
        return f"no program that builds images is installed ({_INSTALL})"
    return (
        ""
        if host.find_engine(home)
        else (f"no program that runs containers is installed ({_INSTALL})")
    )


def _build(
    home: Home, ref: StackRef, form: ImageForm, bring_up: Callable[[str], int], report: Report
) -> str | None:
    """Build missing images and write the stack file; if that is not possible, return the reason."""
    file = ref.root / file_name(form.stack)
    write_form, is_new = partial(write, file, ref.stack, form), not file.exists()
    known = pinned_images(ref.root, form)
    registry.connect(ref, report, start=True)
    lifecycle.start(home, report)
    write_form(known, () if known.keys() == form.images.keys() else ("jobs",))
    settings = stacks_of_program.settings_of(ref.root, form.stack)
    waiting = [name for name in form.images if not _is_built(settings, name, ref.root)]
    for name in waiting:
        if reason := _obstacle(ref.root / form.images[name]):
            if is_new:
                file.unlink()
            return reason
    if waiting and not _has_repository(home, settings):
        report(f"creating the repository of stack {form.stack} first, then the image, then the job")
        write_form({}, ("jobs",))
        if code := bring_up(form.stack):
            raise CommandError(f"stack {form.stack}: `pulumi up` ended with exit code {code}.")
    try:
        write_form(dict(built_pins(settings, form, ref)))
    except ImageBuildError as failed:
        for line in failed.last_lines:
            report(f"  | {line}")
        return str(failed)
    return None


def built_pins(settings: Settings, form: ImageForm, ref: StackRef) -> Iterator[tuple[str, Any]]:
    """Build missing images; yield each image with the keys that pin it. Raises ImageBuildError."""

    def engine() -> Engine:
        return engines.choose(None, ref.project, ref.region, is_local=True)

    options = building.BuildOptions(engine, BUILD_SECONDS)
    for name in form.images:
        result = building.build_image(settings, name, ref.root, options)
        yield name, {"digest": result.digest, "builtFrom": result.tag}


def _is_built(settings: Settings, name: str, root: Path) -> bool:
    """Return True if the registry has an image of the context as it is now."""
    source = pins.source_of(settings.images[name])
    assert source is not None  # each has a context
    at, path = registry.registry_of(settings.names.image(name))
    return at.digest_of(path, identity.tag_of(source, root)) is not None


def _has_repository(home: Home, settings: Settings) -> bool:
    path = settings.names.image("x").split("/")[1:3]
    repositories = Store(home.database).list(REPOSITORY)
    return any(
        [repository.project, repository.inputs.get("repositoryId")] == path
        for repository in repositories
    )


def _obstacle(context: Path) -> str:
    """Return why this machine cannot build a Dockerfile; empty if its sources are reachable."""
    text = (context / "Dockerfile").read_text("utf-8", errors="replace")
    if _TORCH_INDEX not in text or _reaches_cpu_wheels():
        return ""
    return "cannot reach PyTorch's index of CPU wheels, which the image needs"


def _reaches_cpu_wheels() -> bool:
    command = uv_command("pip", "compile", "--quiet", "--no-deps", "--torch-backend", "cpu", "-")
    bound = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
    env = {**installer_environment(), **bound}
    try:
        done = subprocess.run(
            command, input=b"torch", env=env, capture_output=True, timeout=_PROBE_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def pinned_images(root: Path, form: ImageForm) -> dict[str, dict[str, str]]:
    """Return the digests in the file that an earlier run wrote.

    Raises:
        CommandError: a file of this name was written by somebody else.
    """
    file = root / file_name(form.stack)
    if not file.exists():
        return {}
    if not file.read_text("utf-8", errors="replace").startswith(MARK):
        text = f"{file.name} exists and was not written by this command."
        raise CommandError(
            text, f"rename the file, or deploy it by `vt local up --stack {form.stack}`"
        )
    try:
        images = stacks.read_stack_file(root, form.stack)["config"][f"{NAMESPACE}:images"]
        return {
            name: {key: images[name][key] for key in ("digest", "builtFrom")}
            for name in form.images
        }
    except (CommandError, LookupError, TypeError):
        return {}


def write(
    file: Path, source: str, form: ImageForm, pinned: Mapping[str, Any],
    without: Collection[str] = (),
) -> None:  # fmt: skip
    """Replace the stack file atomically."""
    text = form.text(source, pinned, without)
    if file.exists() and file.read_text("utf-8", errors="replace") == text:
        return
    RootDirectory(file.parent).write(file.name, text.encode())
