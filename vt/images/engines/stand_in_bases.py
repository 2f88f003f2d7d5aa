"""Base images that are stood in for: in the local cloud, where nothing can be pulled.

A Dockerfile names its base by digest, and a stand-in has another one. So the builder is told what
takes the place of that name, and the Dockerfile stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: What takes the place of a name in FROM: buildah-build(1), podman-build(1).
OPTION: Final = "--build-context"
_FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)", re.IGNORECASE | re.MULTILINE)
#: Docker Hub's official images, however they are called.
_HUB: Final = re.compile(r"(?:(?:index\.)?docker\.io/)?(?:library/)?(?P<name>[^/]+)\Z")


def stand_ins(dockerfile: Path) -> Mapping[str, str]:
    """Base images of a Dockerfile that have a digest -> the image that is taken for each.

    Those without a digest need nothing: the mirror of the local cloud is asked for their tags.
    """
    from localcloud.containers import mirror

    try:
        text = dockerfile.read_text("utf-8", errors="replace")
    except OSError:
        return {}
    named = dict.fromkeys(name for name in _FROM.findall(text) if _is_base(name, mirror.BASE))
    return dict.fromkeys(named, mirror.BASE) if named and mirror.has_stand_in() else {}


def _is_base(name: str, base: str) -> bool:
    tagged, _, digest = name.partition("@")
    found = _HUB.match(tagged)
    return found is not None and bool(digest) and f"docker.io/library/{found['name']}" == base


def options(found: Mapping[str, str]) -> list[str]:
    """What buildah and podman are called with."""
    return [part for name, by in found.items() for part in (OPTION, f"{name}=docker-image://{by}")]


def notice(name: str) -> str:
    """The line that says so."""
    return f"{name} is stood in for by Debian's packages of the same release and Python"
