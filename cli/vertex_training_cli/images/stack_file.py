"""Writes pins into a stack file: as a whole or not at all, one command at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from vertex_training.errors import CommandError
from vertex_training.located_yaml.editing import set_value
from vertex_training.settings.project_files import file_of
from vertex_training.stack import SCHEMA
from vertex_training_cli.engine.paths import link_out

#: Keys of an image, in the order in which they are added to an entry.
KEYS: Final = ("digest", "builtFrom")


def write_pins(root: Path, stack: str, pins: Mapping[str, Mapping[str, str]]) -> bool:
    """Set keys of images in the file of ``stack``; returns whether it changed.

    ``pins`` are values by key, by image. The file is replaced in one step: it is as before, or
    complete, whenever this process is killed.

    Raises:
        UnknownStackError: there is no such file.
        ConfigError: it cannot be edited in place.
        CommandError: it cannot be written, or is a link out of ``root``.
    """
    named = file_of(root, stack)
    file = named.resolve()
    if link_out(named):
        what = f"{named.name} is a link out of its folder; nothing is written through it."
        raise CommandError(what, "put a file in its place")
    try:
        with _locked(file.parent):
            before = after = file.read_bytes()
            for name, values in pins.items():
                for key in KEYS:
                    if key in values:
                        path = ("config", f"{SCHEMA.namespace}:images", name, key)
                        after = set_value(after, path, values[key], file.name)
            if after != before:
                _replace(file, after)
    except OSError as failed:
        text = f"{file.name} cannot be written: {failed.strerror}; it is as it was."
        raise CommandError(text) from None
    return after != before


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder against other commands: a lock on the file would go with its replacement."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(file: Path, content: bytes) -> None:
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a killed command, or a link that a clone has
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), file.stat().st_mode & 0o777)
            os.fsync(stream.fileno())
        os.replace(partial, file)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise
