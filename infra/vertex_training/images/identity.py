"""The identity of an image build: a digest of the context's archive and of the options.

Two builds of one context have different image digests (package installers write times and caches).
So the inputs identify a build, and stack files pin the digest of the first image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.images.context import BuildContext, read_context

#: Platform of Vertex AI's machines.
PLATFORM: Final = "linux/amd64"
#: Format of the digested data; changing it changes all identities.
_FORM: Final = 1
_TAG_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Source:
    """The files and options that an image is built from. ``context`` is a folder."""

    context: str
    dockerfile: str = "Dockerfile"
    build_args: tuple[tuple[str, str], ...] = ()
    target: str = ""
    include: tuple[str, ...] = ()
    """Further folders of the checkout; each is in the context under the last part of its name."""

    @classmethod
    def of(
        cls,
        context: str,
        dockerfile: str,
        build_args: Mapping[str, str],
        target: str | None,
        include: Sequence[str] = (),
    ) -> Source:
        """Create the source with sorted build arguments."""
        args = tuple(sorted(build_args.items()))
        return cls(context, dockerfile, args, target or "", tuple(include))

    def read(self, root: Path) -> BuildContext:
        """Read the context in the checkout ``root``; see ``read_context``."""
        folders = {name: root / name for name in self.include}
        return read_context(root / self.context, self.dockerfile, self.context, folders)


class _Digest:
    """A stream that computes a digest of the written bytes, and can copy the bytes to ``copy``."""

    def __init__(self, head: bytes, copy: IO[bytes] | None = None) -> None:
        self.sha256 = hashlib.sha256(head)
        self._copy = copy

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        if self._copy:
            self._copy.write(data)
        return len(data)


def identity(source: Source, context: BuildContext) -> str:
    """Return 64 hex digits that depend only on the files and the build options.

    Raises:
        ConfigError: a file cannot be read, or was changed in between.
    """
    stream = _Digest(_head(source))
    try:
        context.write(stream)  # pyright: ignore[reportArgumentType] a stream needs no more
    except OSError as failed:
        what = f"the build context cannot be read: {failed.strerror or failed}"
        raise ConfigError([Problem(what, location=Location(source.context))]) from None
    return stream.sha256.hexdigest()


def write_archive(source: Source, context: BuildContext, file: Path) -> str:
    """Write a context's archive to a file, and return the identity of the build.

    Raises:
        OSError: a file cannot be read or written.
    """
    with file.open("wb") as stream:
        digest = _Digest(_head(source), stream)
        context.write(digest)  # pyright: ignore[reportArgumentType] a stream needs no more
    return digest.sha256.hexdigest()


def _head(source: Source) -> bytes:
    """Return the beginning of the digested data, before the archive: the build options."""
    options = {
        "form": _FORM,
        "platform": PLATFORM,
        "dockerfile": source.dockerfile,
        "buildArgs": dict(source.build_args),
        "target": source.target,
    }
    return json.dumps(options, sort_keys=True).encode() + b"\0"


def short(text: str) -> str:
    """Return a short digest of ``text`` to use in a file name."""
    return hashlib.sha256(text.encode()).hexdigest()[:_TAG_DIGITS]


def tag(build: str) -> str:
    """Return the image tag for a build identity: ``context-`` and 32 hex digits."""
    return f"context-{build[:_TAG_DIGITS]}"


def tag_of(source: Source, root: Path) -> str:
    """Return the image tag for ``source`` in the checkout ``root``.

    Raises:
        ConfigError: see ``read_context`` and ``identity``.
    """
    return tag(identity(source, source.read(root)))
