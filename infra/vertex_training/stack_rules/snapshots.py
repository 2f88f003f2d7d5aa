"""Rules of the section ``snapshots``: one query each, whose parameters are given. Pure."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator
from typing import Final

from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.secret_rules.files import secret_lines
from vertex_training.secret_rules.redaction import is_secret_variable
from vertex_training.settings.model import Settings
from vertex_training.settings.snapshots import AS_OF, Snapshot
from vertex_training.snapshots import request
from vertex_training.snapshots.estimate import LEAST_BILLED
from vertex_training.stack_rules.files import file_problems

#: https://docs.cloud.google.com/bigquery/quotas#query_jobs: a query has at most 1 MB
MOST_BYTES: Final = 1_000_000
_VALUE_HINT: Final = "everybody who reads the stack's state can read it: join a table that has it"


def problems(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """Everything that does not hold."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, snapshot in settings.snapshots.items():
        path: Path = ("snapshots", key)
        if snapshot.bucket not in settings.buckets:
            hint = did_you_mean(snapshot.bucket, settings.buckets) or "add it to buckets"
            yield Problem("this stack has no such bucket", snapshot.bucket, hint, (*path, "bucket"))
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
    for line, rule in secret_lines(snapshot.query, data).items():
        if not {snapshot.query, f"{snapshot.query}:{line}"} & settings.allowed_secrets.keys():
            what, place = f"line {line} looks like a secret ({rule})", f"{snapshot.query}:{line}"
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


def warnings(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """Queries that give another result each time they run; files that others may replace."""
    writers = [(name, account.writes) for name, account in settings.service_accounts.items()]
    for key, snapshot in settings.snapshots.items():
        if found := request.volatile_in((root / snapshot.query).read_text(encoding="utf-8")):
            what = f"gives another result each time: {', '.join(found)}"
            path = ("snapshots", key, "query")
            yield Problem(what, snapshot.query, "give a parameter its place", path, level="warning")
        if (most := snapshot.max_bytes_billed) < LEAST_BILLED:
            what = "BigQuery bills 10 MiB or more for a table, and will refuse the query"
            path = ("snapshots", key, "maxBytesBilled")
            yield Problem(what, str(most), f"{LEAST_BILLED} or more", path, level="warning")
        where, bucket = ("snapshots", key, "bucket"), snapshot.bucket
        hint = "give snapshots a bucket of their own"
        if names := [name for name, writes in writers if bucket in writes]:
            what = f"jobs as {', '.join(names)} can replace its files"
            yield Problem(what, bucket, hint, where, level="warning")
        if days := settings.buckets[bucket].delete_after_days:
            what = f"its files are deleted after {days} days"
            yield Problem(what, bucket, hint, where, level="warning")
