"""A snapshot as requested: its query as text, and its identity. Pure."""

from __future__ import annotations

import hashlib
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.request.job_file import ID_LENGTH, canonical
from vertex_training.naming import SNAPSHOTS
from vertex_training.settings.model import Settings
from vertex_training.settings.snapshots import AS_OF, Scalar

#: Name of the last object of a snapshot, in its folder.
MANIFEST: Final = "manifest.json"
#: The folder of any request: ``SnapshotRequest.prefix``.
_FOLDER: Final = re.compile(rf"{SNAPSHOTS}/[^/]+/[^/]+/[0-9a-f]{{{ID_LENGTH}}}/")


def is_of_snapshot(name: str) -> bool:
    """Return whether an object of this name is a file of a snapshot, of any stack and run."""
    return bool(_FOLDER.match(name))


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """One run of one snapshot. ``name`` is its first key."""

    project: str
    stack: str
    name: str
    run: int
    location: str
    bucket: str
    """Name of the bucket that keeps the files."""
    sql: str
    """The query without comments, which is what is sent."""
    parameters: Mapping[str, Scalar]
    as_of: str | None
    format: str
    max_bytes_billed: int

    @property
    def sql_digest(self) -> str:
        """SHA-256 of the canonical query, in hex."""
        return hashlib.sha256(canonical_query(self.sql).encode()).hexdigest()

    @property
    def request_id(self) -> str:
        """Digest of all that decides what the files hold and where they are.

        Not the bytes that may be billed: a higher bound asks for nothing else.
        """
        content = {
            "project": self.project,
            "stack": self.stack,
            "name": self.name,
            "run": self.run,
            "location": self.location,
            "bucket": self.bucket,
            "sql": self.sql_digest,
            "parameters": [
                (name, type(value).__name__, value)
                for name, value in sorted(self.parameters.items())
            ],
            "asOf": self.as_of,
            "format": self.format,
        }
        return hashlib.sha256(canonical(content).encode()).hexdigest()[:ID_LENGTH]

    @property
    def prefix(self) -> str:
        """Names of its objects begin with it; without a ``/`` at the end."""
        return f"{SNAPSHOTS}/{self.stack}/{self.name}/{self.request_id}"

    @property
    def uri(self) -> str:
        """The folder, which ``${snapshots.KEY}`` stands for."""
        return f"gs://{self.bucket}/{self.prefix}"

    @property
    def all_parameters(self) -> dict[str, Scalar]:
        """The parameters that are sent, by name; ``as_of`` among them."""
        return {**self.parameters, **({AS_OF: self.as_of} if self.as_of else {})}


def plan_snapshots(settings: Settings, root: pathlib.Path) -> dict[str, SnapshotRequest]:
    """The snapshots of a stack by the keys of ``settings``, which are first keys."""
    return {
        key: SnapshotRequest(
            project=settings.project,
            stack=settings.stack,
            name=key,
            run=snapshot.run,
            location=snapshot.location or settings.region,
            bucket=settings.names.bucket(snapshot.bucket),
            sql=without_comments((root / snapshot.query).read_text(encoding="utf-8")),
            parameters=snapshot.parameters,
            as_of=snapshot.as_of,
            format=snapshot.format,
            max_bytes_billed=snapshot.max_bytes_billed,
        )
        for key, snapshot in settings.snapshots.items()
    }


#: Texts and quoted names, in which nothing else counts; comments; the rest one by one.
_TOKEN: Final = re.compile(
    r"(?P<quoted>(?:\b[rb]{1,2})?(?:\"\"\"(?:\\.|(?!\"\"\").)*+\"\"\"|'''(?:\\.|(?!''').)*+'''"
    r"|\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+')|`(?:\\.|[^`\\\n])*+`)"
    r"|(?P<comment>(?:--|\#)[^\r\n]*|/\*.*?\*/)"
    r"|(?P<open>/\*|\"\"\"|'''|[\"'`])"
    r"|(?P<parameter>(?<!@)@[A-Za-z_]\w*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
#: How a query begins; all else could change something.
_QUERY: Final = ("select", "with", "from", "(")
#: What begins a part of a pipe that writes.
_WRITING: Final = ("call", "create", "delete", "export", "insert", "merge", "update")
#: What gives another result each time, whatever the tables hold.
_VOLATILE: Final = re.compile(
    r"current_(?:date|time|datetime|timestamp|user)|rand|generate_uuid|session_user"
)


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(sql):
        if found.lastgroup == "open":  # it has no end: all that follows is inside
            yield "open", sql[found.start() :]
            return
        yield str(found.lastgroup), found[0]


def without_comments(sql: str) -> str:
    """The query with a space for every comment; lines keep their numbers, for messages."""
    kept = (
        " " + "\n" * text.count("\n") if kind == "comment" else text for kind, text in _tokens(sql)
    )
    return "".join(kept).rstrip().removesuffix(";").rstrip()


def canonical_query(sql: str) -> str:
    """The query as its identity has it: without comments, white space as one space.

    >>> canonical("SELECT 1 -- one\\n  AS x, ' -- ';")
    "SELECT 1 AS x, ' -- '"
    """
    kept = (" " if kind == "space" else text for kind, text in _tokens(without_comments(sql)))
    return "".join(kept).strip()


def parameters_in(sql: str) -> set[str]:
    """Names of its parameters, in lower case, as BigQuery compares them."""
    return {text[1:].lower() for kind, text in _tokens(sql) if kind == "parameter"}


def volatile_in(sql: str) -> list[str]:
    """Functions in it whose result is another one each time."""
    words = (text for kind, text in _tokens(sql) if kind == "word")
    return sorted({word.upper() for word in words if _VOLATILE.fullmatch(word.lower())})


def form_problems(sql: str) -> Iterator[tuple[str, str]]:
    """Return the reasons why it is not a single query, each with a hint."""
    tokens = [token for token in _tokens(without_comments(sql)) if token[0] != "space"]
    if any(kind == "open" for kind, _ in tokens):
        yield "has a text or a comment without an end", "close it"
    elif not tokens:
        yield "is empty", "write a query: SELECT …"
    elif any(token == ("other", ";") for token in tokens):
        yield "has several statements", "a snapshot is of one query"
    elif tokens[0][1].lower() not in _QUERY:
        yield "is no query", "begin with SELECT, WITH or FROM: a snapshot changes no table"
    elif any(
        first[1] + second[1] == "|>" and third[1].lower() in _WRITING
        for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False)
    ):
        yield "is no query", "a part of its pipe writes: a snapshot changes no table"


def reads_as_of(sql: str) -> bool:
    """Return whether it reads a table as of the snapshot's time."""
    found = re.compile(rf"\bfor system_time as of @{AS_OF}\b", re.IGNORECASE)
    return bool(found.search(canonical_query(sql)))
