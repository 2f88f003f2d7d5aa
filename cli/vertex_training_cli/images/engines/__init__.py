"""Engines that build images, by name; each is loaded when it is used.

==================  ==========================================================
``engine``          the contract: a build, and what an engine does with it
``commands``        docker, podman and buildah by their command lines
``processes``       runs a program with a deadline, line by line
``work_folders``    folders that a build works in, and what killed builds left
``cloud_build``     Cloud Build: starts, joins, follows and cancels a build
``build_request``   what is asked of Cloud Build for an image
``build_service``   its calls by the official client, and what refusals mean
``build_sources``   archives in the staging bucket
``build_logs``      lines of a build's log from Cloud Logging
``standalone``      one build as a process of its own, for the local cloud
``stand_in_bases``  base images that the local cloud stands in for
==================  ==========================================================
"""

from __future__ import annotations

import importlib
from typing import Final

from vertex_training.errors import CommandError, did_you_mean
from vertex_training_cli.images.engines.engine import Engine

#: Programs of this machine, in the order in which they are tried.
PROGRAMS: Final = ("docker", "podman", "buildah")
#: What builds images of Google's projects where none is named.
SERVICE: Final = "cloud-build"
#: Engine -> module of this folder with ``find(name, project, region) -> Engine | None``.
MODULES: Final = {**dict.fromkeys(PROGRAMS, "commands"), SERVICE: "cloud_build"}


def choose(name: str | None, project: str, region: str, *, is_local: bool) -> Engine:
    """The engine called ``name``; without a name the project's default one.

    The default is Cloud Build for Google's projects, else the first program that is there.

    Raises:
        CommandError: there is no such engine, or none on this machine.
    """
    if name and name not in MODULES:
        raise CommandError(f"there is no engine {name!r}.", did_you_mean(name, MODULES))
    default = PROGRAMS if is_local else (SERVICE,)
    for candidate in (name,) if name else default:
        module = importlib.import_module(f"{__name__}.{MODULES[candidate]}")
        if engine := module.find(candidate, project, region):
            return engine
    missing = f"{name} is not installed here." if name else "no engine builds images here."
    hint = f"install one of {', '.join(PROGRAMS)} (docs/container-images.md)."
    raise CommandError(missing, hint)
