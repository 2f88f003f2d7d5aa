"""Rules about the encryption key, buckets and snapshots."""

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
_VALUE_HINT: Final = "the stack's state would show the value: join a table that contains it instead"


@rule()
def encryption_key(settings: Settings) -> Iterator[Problem]:
    """Check that the encryption key is in the stack's region."""
    if settings.encryption is None:
        return
    # general/cmek: the key must be in the region of the job, not in a multi-region or global.
    location = settings.encryption.key.split("/")[3]
    if location != settings.region:
        what = f"this key is in {location}, but the encrypted resources are in {settings.region}"
        hint = f"use a key of a key ring in {settings.region}"
        yield Problem(what, settings.encryption.key, hint, ("encryption", "key"))


@rule()
def retention(settings: Settings) -> Iterator[Problem]:
    """Check that no setting deletes objects that another setting retains or protects."""
    for key, bucket in settings.buckets.items():
        if bucket.protect and bucket.force_destroy:
            what = "forceDestroy contradicts protect, which forbids deleting the bucket"
            path = ("buckets", key, "forceDestroy")
            yield Problem(what, "", "remove forceDestroy or protect", path)
        if bucket.retention:
            yield from _of_bucket(key, bucket, bucket.retention.days)


@rule("warning")
def used_buckets(settings: Settings) -> Iterator[Problem]:
    """Warn if jobs write to buckets with retention, or read from classes with retrieval fees."""
    accounts = settings.service_accounts.items()
    for key, bucket in settings.buckets.items():
        writers = [name for name, account in accounts if key in account.writes]
        readers = [name for name, account in accounts if key in account.reads]
        if bucket.retention and writers:
            # A changed file on /gcs is written as a whole: Cloud Storage answers 403.
            what = f"account {writers[0]} cannot overwrite checkpoints in a bucket with retention"
            hint = "use a separate bucket for files with retention"
            yield Problem(what, "", hint, ("buckets", key, "retention"))
        if bucket.storage_class != "STANDARD" and (used := [*readers, *writers]):
            # general/locations recommends class Standard for training
            what = f"account {used[0]} uses this bucket, whose class charges a fee for each read"
            path = ("buckets", key, "storageClass")
            yield Problem(what, bucket.storage_class, "write STANDARD", path)


def _of_bucket(key: str, bucket: Bucket, days: int) -> Iterator[Problem]:
    path = ("buckets", key)
    if bucket.force_destroy:
        what = f"forceDestroy contradicts retention, which keeps objects for {days} days"
        yield Problem(what, "", "remove forceDestroy or retention", (*path, "forceDestroy"))
    if bucket.objects:
        what = f"retention prevents replacing changed objects for {days} days"
        yield Problem(what, "", "move objects to another bucket", (*path, "objects"))
    if bucket.delete_after_days is not None and bucket.delete_after_days < days:
        what = f"deleteAfterDays is less than retention, which is {days} days"
        hint = f"write {days} or more"
        yield Problem(what, str(bucket.delete_after_days), hint, (*path, "deleteAfterDays"))


@file_rule()
def snapshots(file: StackFile) -> Iterator[Problem]:
    """Check the bucket, time, parameters and query of each snapshot."""
    settings, root = file.settings, file.root
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, snapshot in settings.snapshots.items():
        path: Path = ("snapshots", key)
        if snapshot.bucket not in settings.buckets:
            at = (*path, "bucket")
            yield unknown_entry("bucket", snapshot.bucket, settings.buckets, "buckets", at)
        if snapshot.as_of and datetime.datetime.fromisoformat(snapshot.as_of) > now:
            what, hint = "asOf is in the future", "write a past time"
            yield Problem(what, snapshot.as_of, hint, (*path, "asOf"))
        for name, value in snapshot.parameters.items():
            if is_secret_variable(name, str(value)):
                where = (*path, "parameters", name)
                yield Problem("this parameter looks like a secret", hint=_VALUE_HINT, path=where)
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
        what = "this query is larger than 1 MB, BigQuery's limit"
        yield Problem(what, snapshot.query, "shorten the query", where)
        return
    try:
        sql = data.decode()
    except UnicodeDecodeError:
        what, hint = "the file is not UTF-8 text", "save the file as UTF-8"
        yield Problem(what, snapshot.query, hint, where)
        return
    for line, form in secret_lines(snapshot.query, data).items():
        if not {snapshot.query, f"{snapshot.query}:{line}"} & settings.allowed_secrets.keys():
            what, place = f"line {line} looks like a secret ({form})", f"{snapshot.query}:{line}"
            hint = f"remove the secret, or set allowedSecrets: {{{place}: reason}}"
            yield Problem(what, "", hint, where)
    for what, hint in request.form_problems(sql):
        yield Problem(what, snapshot.query, hint, where)
    yield from _parameters(snapshot, sql, path)


def _parameters(snapshot: Snapshot, sql: str, path: Path) -> Iterator[Problem]:
    used, declared = request.parameters_in(sql), {name.lower() for name in snapshot.parameters}
    for name in sorted(used - declared - {AS_OF}):
        what = f"the query uses @{name}, which parameters do not set"
        yield Problem(what, snapshot.query, f"set parameters: {{{name}: …}}", (*path, "query"))
    for name in snapshot.parameters:
        if name.lower() not in used:
            what = f"the query does not use @{name}"
            hint = did_you_mean(name, used) or f"remove {name} from parameters"
            yield Problem(what, hint=hint, path=(*path, "parameters", name))
    if snapshot.as_of and not request.reads_as_of(sql):
        what = "asOf is set, but no table of the query has FOR SYSTEM_TIME"
        hint = f"write FROM table FOR SYSTEM_TIME AS OF @{AS_OF}"
        yield Problem(what, snapshot.as_of, hint, (*path, "asOf"))
    if AS_OF in used and not snapshot.as_of:
        what = f"the query uses @{AS_OF}, but asOf is not set"
        yield Problem(what, snapshot.query, "set asOf of the snapshot", (*path, "query"))


@file_rule("warning")
def changing_snapshots(file: StackFile) -> Iterator[Problem]:
    """Warn about queries whose results vary, and files that jobs or lifecycles may delete."""
    settings, root = file.settings, file.root
    writers = [(name, account.writes) for name, account in settings.service_accounts.items()]
    for key, snapshot in settings.snapshots.items():
        if functions := request.volatile_in((root / snapshot.query).read_text(encoding="utf-8")):
            what = f"the result varies between runs: the query uses {', '.join(functions)}"
            path = ("snapshots", key, "query")
            yield Problem(
                what, snapshot.query, "use a query parameter instead of the function", path
            )
        if (most := snapshot.max_bytes_billed) < LEAST_BILLED:
            what = "BigQuery will refuse the query: it bills at least 10 MiB for a table"
            path = ("snapshots", key, "maxBytesBilled")
            yield Problem(what, str(most), f"write {LEAST_BILLED} or more", path)
        where, bucket = ("snapshots", key, "bucket"), snapshot.bucket
        hint = "use a separate bucket for snapshots"
        if names := [name for name, writes in writers if bucket in writes]:
            what = f"jobs that run as {', '.join(names)} can replace the snapshot's files"
            yield Problem(what, bucket, hint, where)
        if days := settings.buckets[bucket].delete_after_days:
            what = f"this bucket deletes the snapshot's files after {days} days"
            yield Problem(what, bucket, hint, where)
