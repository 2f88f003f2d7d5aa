"""Command lines of container engines (pure).

buildah runs without a daemon and without cgroup permissions. podman and docker run a container as
the user who started the local cloud, because the local cloud refuses other users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.inventory.resource_paths import is_local
from localgcp.system.gpus import Gpu

#: Label with the home of a container, because all homes share docker and podman.
LABEL: Final = "vertex-training.home"
#: Kind of NVIDIA GPUs in the Container Device Interface.
CDI_KIND: Final = "nvidia.com/gpu"
#: Folder of the buckets of a job.
MOUNT: Final = "/gcs"


@dataclass(frozen=True)
class Buildah:
    """The engine buildah, with its files in the home folder."""

    program: str
    folder: Path
    """Folder of buildah's images and containers."""
    isolate: tuple[str, ...] = ()
    """Prefix that creates namespaces, so that a killed command leaves no mounts or processes."""
    name: str = "buildah"

    def prepare(self, container: str, reference: str) -> list[str]:
        options = ["--tls-verify=false", "--pull", "--name", container]
        return self._call("from", *options, reference)

    def inspect(self, container: str, reference: str) -> list[str]:
        return self._call("inspect", container)

    def parse(self, printed: str) -> ImageConfig:
        return ImageConfig.parse(json.loads(printed)["OCIv1"].get("config") or {})

    def run(
        self,
        container: str,
        reference: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        volumes: Mapping[str, Path],
        gpus: Sequence[Gpu] = (),
    ) -> list[str]:
        options = ["--isolation", "chroot", "--network", "host"]
        options += _repeat("--volume", (f"{source}:{path}" for path, source in volumes.items()))
        options += _repeat("--env", (f"{name}={value}" for name, value in env.items()))
        return self._call("run", *options, container, "--", *argv)

    def remove(self, container: str) -> list[str]:
        return self._call("rm", container)

    def containers(self) -> list[str]:
        return self._call("containers", "--noheading", "--format", "{{.ContainerName}}")

    def _call(self, *arguments: str) -> list[str]:
        places = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        return [*self.isolate, self.program, *places, *arguments]


@dataclass(frozen=True)
class Docker:
    """The engine docker, or podman, which accepts the same arguments."""

    program: str
    home: str
    """Value of ``LABEL`` for containers of this home."""
    user: str
    """``UID:GID`` of the user who started the local cloud."""
    name: str = "docker"

    def prepare(self, container: str, reference: str) -> list[str]:
        insecure = ["--tls-verify=false"] if self.name == "podman" else []
        return [self.program, "pull", *insecure, reference]

    def inspect(self, container: str, reference: str) -> list[str]:
        return [self.program, "image", "inspect", "--format", "{{json .Config}}", reference]

    def parse(self, printed: str) -> ImageConfig:
        document: dict[str, Any] = json.loads(printed) or {}
        return ImageConfig.parse(document)

    def run(
        self,
        container: str,
        reference: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        volumes: Mapping[str, Path],
        gpus: Sequence[Gpu] = (),
    ) -> list[str]:
        options = ["--rm", "--init", "--name", container, "--label", f"{LABEL}={self.home}"]
        options += ["--network", "host", "--user", self.user]
        options += _repeat("--volume", (f"{source}:{path}" for path, source in volumes.items()))
        options += ["--userns", "keep-id"] if self.name == "podman" else []
        options += self._gpu_options(gpus)
        options += _repeat("--env", (f"{name}={value}" for name, value in env.items()))
        options += ["--entrypoint", argv[0]]
        return [self.program, "run", *options, reference, *argv[1:]]

    def _gpu_options(self, gpus: Sequence[Gpu]) -> list[str]:
        if self.name == "podman":  # Before version 5, podman ignores --gpus.
            return _repeat("--device", (f"{CDI_KIND}={gpu.cdi_name}" for gpu in gpus))
        ids = ",".join(gpu.id for gpu in gpus)  # Docker parses the value as CSV.
        return ["--gpus", f'"device={ids}"'] if ids else []

    def remove(self, container: str) -> list[str]:
        return [self.program, "rm", "--force", container]

    def containers(self) -> list[str]:
        own = f"label={LABEL}={self.home}"
        return [self.program, "ps", "--all", "--filter", own, "--format", "{{.Names}}"]


def _repeat(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


#: Both classes return command lines. ``prepare`` pulls an image; ``inspect`` prints its
#: configuration for ``parse``. ``run`` runs a command in a container with this machine's network,
#: volumes (path in the container -> file or folder of this machine) and GPUs. ``remove`` removes a
#: container, running or not. ``containers`` prints the names of all containers of this home.
Engine = Buildah | Docker


_IMAGE: Final = re.compile(
    r"[a-z0-9-]+-docker\.pkg\.dev/(?P<path>(?P<project>[a-z0-9-]+)/[a-z0-9._/-]+?)"
    r"(?P<version>@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
)


def registry_path(image: str) -> str | None:
    """Return ``PROJECT/REPOSITORY/NAME@DIGEST`` for a local project's image, else None."""
    match = _IMAGE.fullmatch(image)
    if match is None or not is_local(match["project"]):
        return None
    return match["path"] + (match["version"] or ":latest")


@dataclass(frozen=True)
class ImageConfig:
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> ImageConfig:
        """Parse the ``config`` of an OCI image configuration."""
        entrypoint, command = document.get("Entrypoint") or (), document.get("Cmd") or ()
        return cls(tuple(map(str, entrypoint)), tuple(map(str, command)))

    def command_line(self, command: Sequence[str], args: Sequence[str]) -> list[str]:
        """Return the command line for ``containerSpec.command`` and ``args``; empty if none is set.

        A command replaces ENTRYPOINT and CMD; arguments replace CMD (T:ContainerSpec).
        """
        if command:
            return [*command, *args]
        return [*self.entrypoint, *(args or self.command)]
