"""Rules of what keeps a bucket, and of the encryption key: what the stack could not undo. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vertex_training.errors import Problem
from vertex_training.settings.model import Bucket, Settings


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    for key, bucket in settings.buckets.items():
        if bucket.protect and bucket.force_destroy:
            what = "cannot be: the bucket is protected, and nothing deletes it"
            yield Problem(what, "", "remove it, or protect", ("buckets", key, "forceDestroy"))
        if bucket.retention:
            yield from _of_bucket(key, bucket, bucket.retention.days)


def warnings(settings: Settings) -> Iterator[Problem]:
    """What is valid and would surprise."""
    for key, bucket in settings.buckets.items():
        writers = [name for name, each in settings.service_accounts.items() if key in each.writes]
        readers = [name for name, each in settings.service_accounts.items() if key in each.reads]
        if bucket.retention and writers:
            # A file on /gcs is written again as a whole; Cloud Storage answers 403.
            what = f"account {writers[0]} writes it, and can overwrite no file there, no checkpoint"
            hint = "a bucket of its own for what is kept"
            yield Problem(what, "", hint, ("buckets", key, "retention"))
        if bucket.storage_class != "STANDARD" and (used := [*readers, *writers]):
            # general/locations: buckets of training are best of class Standard
            what = f"account {used[0]} uses it: every read is paid for"
            yield Problem(what, bucket.storage_class, "STANDARD", ("buckets", key, "storageClass"))


def _of_bucket(key: str, bucket: Bucket, days: int) -> Iterator[Problem]:
    path = ("buckets", key)
    if bucket.force_destroy:
        what = f"cannot be: nothing in the bucket can be deleted for {days} days"
        yield Problem(what, "", "remove it, or retention", (*path, "forceDestroy"))
    if bucket.objects:
        what = f"could not be replaced for {days} days when their files change"
        yield Problem(what, "", "another bucket", (*path, "objects"))
    if bucket.delete_after_days is not None and bucket.delete_after_days < days:
        what = f"is less than retention, within which nothing is deleted: {days} days"
        hint = "as many days, or more"
        yield Problem(what, str(bucket.delete_after_days), hint, (*path, "deleteAfterDays"))


def encryption_problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    if settings.encryption is None:
        return
    # general/cmek: the key is in the region of the job; no global and no multi-region.
    location = settings.encryption.key.split("/")[3]
    if location != settings.region:
        what = f"is in {location}: all that it encrypts is in {settings.region}"
        hint = f"a key of a key ring in {settings.region}"
        yield Problem(what, settings.encryption.key, hint, ("encryption", "key"))
