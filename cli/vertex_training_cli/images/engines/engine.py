"""What builds an image: the contract between ``vt images build`` and its engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build. Everything an engine needs: it reads no stack file and no checkout."""

    name: str
    """Its key in the stack file."""
    archive: Path
    """The context: a tar whose root is the folder of the context, ignored files left out."""
    context: str
    """The folder as the stack file names it, for messages."""
    dockerfile: str
    """Path of the Dockerfile inside of the archive."""
    build_args: Mapping[str, str]
    target: str
    """Stage to build; empty: the last one."""
    image: str
    """Full name without tag: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME``."""
    tag: str
    """``context-`` and 32 hex digits: the tag to push under."""
    labels: Mapping[str, str]
    """OCI labels to add: ``org.opencontainers.image.revision``, ``.source`` …"""
    identity: str
    """64 hex digits of the context and the options: the same for the same build."""
    timeout: float
    """Seconds after which the build is given up."""
    writes_cache: bool = False
    """Whether its layers may be what the next build starts from: not of what nobody reviewed."""

    @property
    def reference(self) -> str:
        """``IMAGE:TAG``."""
        return f"{self.image}:{self.tag}"


class Engine(Protocol):
    """Builds images and pushes them."""

    @property
    def name(self) -> str:
        """As ``--engine`` names it."""
        ...

    def build(self, build: Build, write_log: Callable[[str], None]) -> str:
        """Build for linux/amd64, push under ``build.tag``, and return the digest ``sha256:…``.

        ``write_log`` takes the lines of the log, without line ends, as they come. If the registry
        has the tag by the time of the push, nothing is pushed and that digest is returned.
        KeyboardInterrupt cancels the build, and passes.

        Raises:
            ImageBuildError: it failed, took longer than ``build.timeout``, or was not pushed.
        """
        ...
