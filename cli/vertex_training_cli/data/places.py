"""BUCKET/PREFIX of a command line: which bucket, and how names of its objects begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.request.job_file import ID_LENGTH
from vertex_training.errors import CommandError, did_you_mean
from vertex_training.naming import CONTROL, SNAPSHOTS, Names
from vertex_training.settings.model import Settings

_URL: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?", re.DOTALL)

#: What an object of a snapshot is called: the folder has the id of its request.
_OF_SNAPSHOT: Final = re.compile(rf"{SNAPSHOTS}/[^/]+/[^/]+/[0-9a-f]{{{ID_LENGTH}}}/")


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
        return bool(_OF_SNAPSHOT.match(f"{self.prefix}{name}"))


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
