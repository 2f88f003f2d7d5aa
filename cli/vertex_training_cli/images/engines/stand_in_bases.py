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
_ARG: Final = re.compile(r"^[ \t]*ARG[ \t]+(\w+)(?:=(\S*))?", re.IGNORECASE | re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: Docker Hub's official images, however they are called.
_HUB: Final = re.compile(r"(?:(?:index\.)?docker\.io/)?(?:library/)?(?P<name>[^/]+)\Z")


def stand_ins(dockerfile: Path, build_args: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Base images of a Dockerfile that have a digest and are stood in for: as it names them -> the
    names in full, which differ where an ``ARG`` before the first ``FROM`` is part of one.

    Those without a digest need nothing: the mirror of the local cloud is asked for their tags.
    """
    from localgcp.containers import mirror

    try:
        text = dockerfile.read_text("utf-8", errors="replace")
    except OSError:
        return {}
    values = _arguments(text, build_args or {})
    named = {
        name: _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), name)
        for name in _FROM.findall(text)
    }
    stood = {name: full for name, full in named.items() if _is_base(full, mirror.BASE)}
    return stood if stood and mirror.has_stand_in() else {}


def _arguments(text: str, build_args: Mapping[str, str]) -> Mapping[str, str]:
    """Values of the ``ARG``s before the first ``FROM``: given ones, else those of the file."""
    first = _FROM.search(text)
    declared = _ARG.findall(text[: first.start()] if first else "")
    return {name: build_args.get(name, value.strip("\"'")) for name, value in declared}


def _is_base(name: str, base: str) -> bool:
    tagged, _, digest = name.partition("@")
    found = _HUB.match(tagged)
    return found is not None and bool(digest) and f"docker.io/library/{found['name']}" == base


def options(found: Mapping[str, str]) -> list[str]:
    """What buildah and podman are called with. Some versions look for a name as it is written."""
    from localgcp.containers import mirror

    names = dict.fromkeys([*found, *found.values()])
    return [part for name in names for part in (OPTION, f"{name}=docker-image://{mirror.BASE}")]


def notices(found: Mapping[str, str]) -> list[str]:
    """The lines that say so."""
    text = "is stood in for by Debian's packages of the same release and Python"
    return [f"{name} {text}" for name in dict.fromkeys(found.values())]
