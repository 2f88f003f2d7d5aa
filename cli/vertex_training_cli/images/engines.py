"""Interface of engines that build images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

#: Engines of this machine, by preference.
PROGRAMS: Final = ("docker", "podman", "buildah")
#: Default engine for images of Google Cloud projects.
SERVICE: Final = "cloud-build"
#: Function that writes a line of a log, without its line end.
WriteLog = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build. Engines do not read the stack file or the checkout."""

    name: str
    """Key of the image in the stack file."""
    archive: Path
    """Tar archive of the context, without ignored files. Engines write to the archive's folder."""
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
    """Labels to add, such as ``org.opencontainers.image.revision``."""
    identity: str
    """64 hex digits that identify the context and the options of the build."""
    timeout: float
    """Maximum build time in seconds."""
    writes_cache: bool = False
    """True if later builds may use the layers of this build; only for reviewed code."""

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

        If another build has pushed the tag in the meantime, return the digest of that build's
        image. KeyboardInterrupt cancels the build and is raised again. Failures raise
        ImageBuildError.
        """
        ...


def option_pairs(option: str, values: Mapping[str, str]) -> list[str]:
    """Return an option for each entry, sorted by key: ``--label a=b``."""
    return [part for key, value in sorted(values.items()) for part in (option, f"{key}={value}")]
