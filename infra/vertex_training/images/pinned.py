"""What the stack files of a checkout pin: every environment's, as far as they can be read.

A repository keeps what any of them names. A review that asks no registry says from them where a
digest came from. Mistakes in other stack files are those stacks' business: what cannot be read is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_training.errors import ConfigError
from vertex_training.images.cleanup import ImageVersion
from vertex_training.images.pins import PLACEHOLDER
from vertex_training.located_yaml import document
from vertex_training.naming import Names
from vertex_training.settings import project_files
from vertex_training.settings.model import Image, Registry, Settings


@dataclass(frozen=True, slots=True)
class PinRecord:
    """One image that a stack file pins."""

    stack: str
    name: str
    uri: str
    """The image without digest."""
    digest: str
    context: str
    """The folder, where the file has one."""
    built_from: str
    """``context-…``, where the file says it."""

    @property
    def version(self) -> ImageVersion:
        """The version of the image; its tag is known where the file says what it was built from."""
        tags = (self.built_from,) if self.built_from else None
        return ImageVersion(self.uri.split("/", 3)[-1], self.digest, tags)


def records(root: Path) -> list[PinRecord]:
    """All pins of all stack files in ``root``, in order of stacks and names."""
    return [
        record
        for stack in project_files.names(root)
        for record in _records(stack, _config(root / project_files.file_name(stack)))
    ]


def digests_in(repository: str, found: list[PinRecord]) -> tuple[str, ...]:
    """Digests among the pins that are in ``repository``, sorted, each once."""
    return tuple(sorted({each.digest for each in found if each.uri.startswith(f"{repository}/")}))


def digests_of(settings: Settings) -> set[str]:
    """Digests of the stack's own repository that its settings pin."""
    digests = {image.digest for image in settings.images.values() if image.digest}
    return digests - {PLACEHOLDER}


def _records(stack: str, config: Mapping[str, Any]) -> Iterator[PinRecord]:
    project, region = config.get("gcp:project"), config.get("gcp:region")
    images = config.get("vertex-training:images", config.get("images"))
    if not isinstance(images, dict):
        return
    names = Names(str(project), "", str(region), stack, _repository(config))
    for name, given in sorted((str(key), value) for key, value in images.items()):
        try:
            image = Image.model_validate(given)
        except ValueError:
            continue
        uri, _, outside = (image.uri or "").partition("@")
        digest = outside or image.digest or ""
        if digest and digest != PLACEHOLDER and (uri or (project and region)):
            where = uri or names.image(name)
            context, built_from = image.context or "", image.built_from or ""
            yield PinRecord(stack, name, where, digest, context, built_from)


def _repository(config: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The repository that a stack file gives by name; none if it gives none."""
    registry = config.get("vertex-training:registry", config.get("registry"))
    try:
        given = Registry.model_validate(registry or {})
    except ValueError:
        return {}
    name = given.existing or given.name
    return {("registry", ""): name} if name else {}


def _config(file: Path) -> dict[str, Any]:
    try:
        content = document.read(file.read_bytes(), file.name).root.plain()
    except (OSError, ConfigError):
        return {}
    config = content.get("config") if isinstance(content, dict) else None
    return config if isinstance(config, dict) else {}
