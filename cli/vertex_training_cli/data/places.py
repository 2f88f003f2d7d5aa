"""BUCKET/PREFIX of a command line: which bucket, and how names of its objects begin."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vertex_training.errors import CommandError, did_you_mean
from vertex_training.naming import CONTROL, Names
from vertex_training.settings.model import Settings
from vertex_training.snapshots import request

_URL: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, and a prefix that is empty or ends with a slash."""

    bucket: str
    prefix: str = ""
    key: str = ""
    """Name of the bucket in the stack file; empty for an address."""

    def __str__(self) -> str:
        """``gs://BUCKET/PREFIX``."""
        return f"gs://{self.bucket}/{self.prefix}"

    def is_of_snapshot(self, name: str) -> bool:
        """Whether an object below the prefix is a file of a snapshot."""
        return request.is_of_snapshot(f"{self.prefix}{name}")


def find(text: str, settings: Settings, names: Names) -> Place:
    """The place of ``NAME/PREFIX``, NAME being a bucket of the stack file, or of ``gs://…``.

    Raises:
        CommandError: the stack has no such bucket, or the prefix is no prefix of objects.
    """
    if text.startswith("gs://"):
        found = _URL.fullmatch(text)
        if found is None:
            raise CommandError(
                f"{text!r} is no address of a bucket.", "write it like gs://B/folder"
            )
        bucket, prefix, key = found[1], found[2] or "", ""
    else:
        key, _, prefix = text.partition("/")
        if key not in settings.buckets:
            raise CommandError(
                f"stack {settings.stack!r} has no bucket {key!r}.",
                did_you_mean(key, settings.buckets) or "declare it below `buckets`.",
            )
        bucket = names.bucket(key)
    prefix = prefix.strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise CommandError(f"{text!r} has an empty part, or one of dots only.")
    return Place(bucket, f"{prefix}/" if prefix else "", key)


def refuse_records(place: Place, names: Names) -> None:
    """Keep people's files out of the control bucket.

    Raises:
        CommandError: it is that of the stack: without a record, a job may be sent twice.
    """
    if place.bucket == names.bucket(CONTROL):
        what = f"{place} has the records of submissions, and takes no files."
        raise CommandError(what, "push to another bucket")


def refuse_snapshots(place: Place, names: Iterable[str]) -> None:
    """Keep people's files out of snapshots, whose files never change.

    Raises:
        CommandError: some of ``names`` below the place are of one.
    """
    if found := [name for name in names if place.is_of_snapshot(name)]:
        what = f"{place}{found[0]} is a file of a snapshot, and those never change."
        raise CommandError(what, "push to another folder, or raise the snapshot's `run`")
