"""Build contexts: a folder with a Dockerfile, and a tag derived from its files.

Nothing is built here. The tag is known before the image exists, so the request of a job is too.
Push the image under this tag.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from infra.plan.packages import files_below
from infra.settings.model import Image

DOCKERFILE: Final = "Dockerfile"
COPY: Final = re.compile(r"^\s*(?:COPY|ADD)\s+(\S.*)$", re.IGNORECASE | re.MULTILINE)
#: Docker takes a first line such as ``FROM python:3.11``, after comments and ARG.
FROM: Final = re.compile(r"^\s*FROM\s+\S", re.IGNORECASE | re.MULTILINE)


def problems(folder: Path) -> Iterator[tuple[str, str]]:
    """What is wrong with a context, each with a hint; nothing if an image could be built of it."""
    file = folder / DOCKERFILE
    if not file.is_file():
        yield "has no Dockerfile", "name the folder that holds it"
        return
    text = file.read_text("utf-8", errors="replace")
    if not FROM.search(text):
        yield "its Dockerfile has no FROM", "begin with FROM and a base image"
    for source in _copied(text):
        if not (folder / source.lstrip("/")).exists():
            yield f"its Dockerfile copies {source}, which is not there", "paths start in the folder"


def _copied(text: str) -> Iterator[str]:
    """Plain paths that COPY and ADD take from the context: no patterns, variables or addresses."""
    joined = re.sub(r"\\[ \t]*\n", " ", text)
    for line in COPY.findall(joined):
        words = line.split()
        if line.lstrip().startswith("[") or any(word.startswith("--from") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")][:-1]
        yield from (path for path in paths if not re.search(r"[*?\[$<]|://|@", path))


def tag(folder: Path) -> str:
    """Tag of the image that is built from ``folder``: the same files, the same tag."""
    digest = hashlib.sha256()
    for name, content in files_below(folder):
        for part in (name.encode(), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return f"src-{digest.hexdigest()[:16]}"


def tags(images: Mapping[str, Image], root: Path) -> dict[str, str]:
    """Tags of the images that have nothing but a context, by key. ``root`` is the checkout."""
    return {
        key: tag(root / image.context)
        for key, image in images.items()
        if image.context and not (image.digest or image.tag)
    }
