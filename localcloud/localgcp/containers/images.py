"""Images that jobs name, and what their configurations say (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from localgcp.inventory.projects import is_local

_IMAGE: Final = re.compile(
    r"[a-z0-9-]+-docker\.pkg\.dev/(?P<path>(?P<project>[a-z0-9-]+)/[a-z0-9._/-]+?)"
    r"(?P<version>@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
)


def registry_path(image: str) -> str | None:
    """``PROJECT/REPOSITORY/NAME@DIGEST`` of an image of a local project; None for any other."""
    found = _IMAGE.fullmatch(image)
    if found is None or not is_local(found["project"]):
        return None
    return found["path"] + (found["version"] or ":latest")


@dataclass(frozen=True)
class ImageConfig:
    """What an image runs, as its Dockerfile says."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> ImageConfig:
        """From an OCI configuration's ``config``."""
        entrypoint, command = document.get("Entrypoint") or (), document.get("Cmd") or ()
        return cls(tuple(map(str, entrypoint)), tuple(map(str, command)))

    def command_line(self, command: Sequence[str], args: Sequence[str]) -> list[str]:
        """What runs for ``containerSpec.command`` and ``args``; empty if nothing says it.

        A command replaces ENTRYPOINT and CMD, arguments replace CMD (T:ContainerSpec).
        """
        if command:
            return [*command, *args]
        return [*self.entrypoint, *(args or self.command)]
