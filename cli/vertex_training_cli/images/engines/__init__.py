"""Engines that build images, by name. An engine is imported when it is used.

=================  ===========================================================
``commands``       docker, podman and buildah by their command lines
``processes``      a program with a deadline, and its output
``cloud_build``    Cloud Build: starts, joins, follows and cancels a build
``build_service``  its calls by the official client, and what refusals mean
``standalone``     one build as a process of its own, for the local cloud
=================  ===========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from vertex_training.errors import CommandError, UnknownNameError, did_you_mean

#: Programs of this machine, in the order in which they are tried.
PROGRAMS: Final = ("docker", "podman", "buildah")
#: Default engine for images of Google Cloud projects.
SERVICE: Final = "cloud-build"
#: Function that writes a line of a log, without its line end.
WriteLog = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build. Engines read no stack file and no checkout."""

    name: str
    """Key of the image in the stack file."""
    archive: Path
    """Tar archive of the context, without ignored files. Engines work in its folder."""
    context: str
    """Folder of the context in the stack file, for messages."""
    dockerfile: str
    """Path of the Dockerfile inside the archive."""
    build_args: Mapping[str, str]
    target: str
    """Stage to build; empty for the last stage."""
    image: str
    """Full name without tag: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME``."""
    tag: str
    """``context-`` and 32 hex digits: the tag to push under."""
    labels: Mapping[str, str]
    """OCI labels to add: ``org.opencontainers.image.revision``, ``.source`` …"""
    identity: str
    """64 hex digits that identify context and options: equal for equal builds."""
    timeout: float
    """Seconds after which the build is cancelled."""
    writes_cache: bool = False
    """True if later builds may use its layers. Only for reviewed code."""

    @property
    def reference(self) -> str:
        """Return ``IMAGE:TAG``."""
        return f"{self.image}:{self.tag}"


class Engine(Protocol):
    """Builds images and pushes them."""

    @property
    def name(self) -> str:
        """Return the engine's name for ``--engine``."""
        ...

    def build(self, build: Build, write_log: WriteLog) -> str:
        """Build for linux/amd64, push under ``build.tag``, and return the digest ``sha256:…``.

        If the registry has the tag by the time of the push, nothing is pushed and that digest is
        returned.
        KeyboardInterrupt cancels the build, and passes.

        Raises:
            ImageBuildError: it failed, took longer than ``build.timeout``, or was not pushed.
        """
        ...


def option_pairs(option: str, values: Mapping[str, str]) -> list[str]:
    """Return an option for each entry, in a fixed order: ``--label a=b``."""
    return [part for key, value in sorted(values.items()) for part in (option, f"{key}={value}")]


def choose(name: str | None, project: str, region: str, *, is_local: bool) -> Engine:
    """Return the engine called ``name``; without a name the project's default engine.

    The default is Cloud Build for Google's projects, else the first program that is there.

    Raises:
        UnknownNameError: there is no such engine.
        CommandError: there is none on this machine.
    """
    from vertex_training_cli.images.engines import commands  # which imports this module

    known = (*PROGRAMS, SERVICE)
    if name and name not in known:
        raise UnknownNameError(f"unknown engine {name!r}.", did_you_mean(name, known))
    for candidate in (name,) if name else PROGRAMS if is_local else (SERVICE,):
        if candidate == SERVICE:  # Google's client takes a second
            from vertex_training_cli.images.engines.cloud_build import CloudBuildEngine

            return CloudBuildEngine(project, region)
        if engine := commands.find(candidate):
            return engine
    missing = (
        f"engine {name} is not installed."
        if name
        else "no program that builds images is installed."
    )
    hint = f"install one of {', '.join(PROGRAMS)} (docs/container-images.md)."
    raise CommandError(missing, hint)
