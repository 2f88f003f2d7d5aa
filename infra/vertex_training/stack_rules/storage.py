"""Rules of what is kept: the encryption key, retention of buckets, and snapshots. Pure."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator
from typing import Final

from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.secret_rules.files import secret_lines
from vertex_training.secret_rules.redaction import is_secret_variable
from vertex_training.settings.model import AS_OF, Bucket, Settings, Snapshot
from vertex_training.snapshots import request
from vertex_training.snapshots.estimate import LEAST_BILLED
from vertex_training.stack_rules import StackFile, file_rule, rule, unknown_entry
from vertex_training.stack_rules.files import file_problems

#: https://docs.cloud.google.com/bigquery/quotas#query_jobs: a query has at most 1 MB
MOST_BYTES: Final = 1_000_000
_VALUE_HINT: Final = "everybody who reads the stack's state can read it: join a table that has it"


@rule()
def encryption_key(settings: Settings) -> Iterator[Problem]:
    """The key is in the region of what it encrypts."""
    if settings.encryption is None:
        return
    # general/cmek: the key is in the region of the job; no global and no multi-region.
    location = settings.encryption.key.split("/")[3]
    if location != settings.region:
        what = f"is in {location}: all that it encrypts is in {settings.region}"
        hint = f"a key of a key ring in {settings.region}"
        yield Problem(what, settings.encryption.key, hint, ("encryption", "key"))


@rule()
def retention(settings: Settings) -> Iterator[Problem]:
    """Nothing asks to delete what retention or protection keeps."""
    for key, bucket in settings.buckets.items():
        if bucket.protect and bucket.force_destroy:
            what = "cannot be: the bucket is protected, and nothing deletes it"
            yield Problem(what, "", "remove it, or protect", ("buckets", key, "forceDestroy"))
        if bucket.retention:
            yield from _of_bucket(key, bucket, bucket.retention.days)


@rule("warning")
def used_buckets(settings: Settings) -> Iterator[Problem]:
    """Jobs neither write files that cannot be overwritten, nor pay for each read."""
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


@file_rule()
def snapshots(file: StackFile) -> Iterator[Problem]:
    """A snapshot has a bucket, a time that has passed, no secrets, and a query that fits."""
    settings, root = file.settings, file.root
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, snapshot in settings.snapshots.items():
        path: Path = ("snapshots", key)
        if snapshot.bucket not in settings.buckets:
            at = (*path, "bucket")
            yield unknown_entry("bucket", snapshot.bucket, settings.buckets, "buckets", at)
        if snapshot.as_of and datetime.datetime.fromisoformat(snapshot.as_of) > now:
            yield Problem("is in the future", snapshot.as_of, "a time that was", (*path, "asOf"))
        for name, value in snapshot.parameters.items():
            if is_secret_variable(name, str(value)):
                where = (*path, "parameters", name)
                yield Problem("looks like a secret", hint=_VALUE_HINT, path=where)
        yield from _query(settings, snapshot, path, root)


def _query(
    settings: Settings, snapshot: Snapshot, path: Path, root: pathlib.Path
) -> Iterator[Problem]:
    where = (*path, "query")
    if missing := list(file_problems(where, snapshot.query, root)):
        yield from missing
        return
    with (root / snapshot.query).open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        yield Problem("has more than 1 MB", snapshot.query, "BigQuery takes no more", where)
        return
    try:
        sql = data.decode()
    except UnicodeDecodeError:
        yield Problem("is no UTF-8 text", snapshot.query, "save it as UTF-8", where)
        return
    for line, form in secret_lines(snapshot.query, data).items():
        if not {snapshot.query, f"{snapshot.query}:{line}"} & settings.allowed_secrets.keys():
            what, place = f"line {line} looks like a secret ({form})", f"{snapshot.query}:{line}"
            yield Problem(what, "", f"remove it, or allowedSecrets: {{{place}: reason}}", where)
    for what, hint in request.form_problems(sql):
        yield Problem(what, snapshot.query, hint, where)
    yield from _parameters(snapshot, sql, path)


def _parameters(snapshot: Snapshot, sql: str, path: Path) -> Iterator[Problem]:
    """Parameters on one side alone; a query that does not read as of the time that is given."""
    used, given = request.parameters_in(sql), {name.lower() for name in snapshot.parameters}
    for name in sorted(used - given - {AS_OF}):
        what = f"uses @{name}, which parameters do not give"
        yield Problem(what, snapshot.query, f"parameters: {{{name}: …}}", (*path, "query"))
    for name in snapshot.parameters:
        if name.lower() not in used:
            what, hint = f"the query has no @{name}", did_you_mean(name, used) or "remove it"
            yield Problem(what, hint=hint, path=(*path, "parameters", name))
    if snapshot.as_of and not request.reads_as_of(sql):
        what = "no table of the query is read as of then"
        hint = f"FROM table FOR SYSTEM_TIME AS OF @{AS_OF}"
        yield Problem(what, snapshot.as_of, hint, (*path, "asOf"))
    if AS_OF in used and not snapshot.as_of:
        yield Problem(f"uses @{AS_OF}", snapshot.query, "give asOf", (*path, "query"))


@file_rule("warning")
def changing_snapshots(file: StackFile) -> Iterator[Problem]:
    """A query gives the same result each time it runs, and no one else replaces its files."""
    settings, root = file.settings, file.root
    writers = [(name, account.writes) for name, account in settings.service_accounts.items()]
    for key, snapshot in settings.snapshots.items():
        if found := request.volatile_in((root / snapshot.query).read_text(encoding="utf-8")):
            what = f"gives another result each time: {', '.join(found)}"
            path = ("snapshots", key, "query")
            yield Problem(what, snapshot.query, "give a parameter its place", path)
        if (most := snapshot.max_bytes_billed) < LEAST_BILLED:
            what = "BigQuery bills 10 MiB or more for a table, and will refuse the query"
            path = ("snapshots", key, "maxBytesBilled")
            yield Problem(what, str(most), f"{LEAST_BILLED} or more", path)
        where, bucket = ("snapshots", key, "bucket"), snapshot.bucket
        hint = "give snapshots a bucket of their own"
        if names := [name for name, writes in writers if bucket in writes]:
            what = f"jobs as {', '.join(names)} can replace its files"
            yield Problem(what, bucket, hint, where)
        if days := settings.buckets[bucket].delete_after_days:
            what = f"its files are deleted after {days} days"
            yield Problem(what, bucket, hint, where)
