"""The request for a snapshot: its query and its identity. Pure."""

from __future__ import annotations

import hashlib
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.request.job_file import ID_LENGTH, canonical
from vertex_training.naming import SNAPSHOTS
from vertex_training.settings.model import AS_OF, Scalar, Settings

#: Name of the object in a snapshot's folder that is written last.
MANIFEST: Final = "manifest.json"
#: Form of a snapshot's folder: ``SnapshotRequest.prefix``.
_FOLDER: Final = re.compile(rf"{SNAPSHOTS}/[^/]+/[^/]+/[0-9a-f]{{{ID_LENGTH}}}/")


def is_of_snapshot(name: str) -> bool:
    """Return True if an object with this name belongs to any stack's snapshot."""
    return bool(_FOLDER.match(name))


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """One run of a snapshot. ``name`` is the snapshot's first key in the stack file."""

    project: str
    stack: str
    name: str
    run: int
    location: str
    bucket: str
    """Name of the bucket for the files."""
    sql: str
    """The query without comments."""
    parameters: Mapping[str, Scalar]
    as_of: str | None
    format: str
    max_bytes_billed: int

    @property
    def sql_digest(self) -> str:
        """Return the SHA-256 of the canonical query, in hex."""
        return hashlib.sha256(canonical_query(self.sql).encode()).hexdigest()

    @property
    def request_id(self) -> str:
        """Return a digest of all values that determine the content or place of the files.

        The limit of billed bytes is not included, because the limit does not affect the result.
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
        """Return the prefix of the objects' names, without a ``/`` at the end."""
        return f"{SNAPSHOTS}/{self.stack}/{self.name}/{self.request_id}"

    @property
    def uri(self) -> str:
        """Return the URI of the folder, the value of ``${snapshots.KEY}``."""
        return f"gs://{self.bucket}/{self.prefix}"

    @property
    def all_parameters(self) -> dict[str, Scalar]:
        """Return all query parameters by name, including ``as_of``."""
        return {**self.parameters, **({AS_OF: self.as_of} if self.as_of else {})}


def plan_snapshots(settings: Settings, root: pathlib.Path) -> dict[str, SnapshotRequest]:
    """Return the requests of a stack's snapshots, by the snapshots' keys in ``settings``."""
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


#: Tokens of SQL: quoted text and names, comments, parameters, words, spaces, other characters.
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
#: First words of a query. Statements with other first words can change data.
_QUERY: Final = ("select", "with", "from", "(")
#: First words of the pipe operators that write data.
_WRITING: Final = ("call", "create", "delete", "export", "insert", "merge", "update")
#: Functions whose results change although the tables do not change.
_VOLATILE: Final = re.compile(
    r"current_(?:date|time|datetime|timestamp|user)|rand|generate_uuid|session_user"
)


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        if match.lastgroup == "open":  # unterminated: includes the rest of the text
            yield "open", sql[match.start() :]
            return
        yield str(match.lastgroup), match[0]


def without_comments(sql: str) -> str:
    """Return the query with spaces instead of comments. Line numbers do not change."""
    parts = (
        " " + "\n" * text.count("\n") if kind == "comment" else text for kind, text in _tokens(sql)
    )
    return "".join(parts).rstrip().removesuffix(";").rstrip()


def canonical_query(sql: str) -> str:
    """Return the query without comments and with single spaces, to compute its identity."""
    parts = (" " if kind == "space" else text for kind, text in _tokens(without_comments(sql)))
    return "".join(parts).strip()


def parameters_in(sql: str) -> set[str]:
    """Return the names of the query's parameters in lowercase, because BigQuery ignores case."""
    return {text[1:].lower() for kind, text in _tokens(sql) if kind == "parameter"}


def volatile_in(sql: str) -> list[str]:
    """Return the functions in the query whose results differ from run to run."""
    words = (text for kind, text in _tokens(sql) if kind == "word")
    return sorted({word.upper() for word in words if _VOLATILE.fullmatch(word.lower())})


def form_problems(sql: str) -> Iterator[tuple[str, str]]:
    """Yield the reasons why the text is not a single query, each with a hint."""
    tokens = [token for token in _tokens(without_comments(sql)) if token[0] != "space"]
    if any(kind == "open" for kind, _ in tokens):
        yield "has an unterminated text or comment", "close the quotes or the comment"
    elif not tokens:
        yield "is empty", "write a query: SELECT …"
    elif any(token == ("other", ";") for token in tokens):
        yield "has several statements", "write one query for each snapshot"
    elif tokens[0][1].lower() not in _QUERY:
        yield (
            "is not a query, and a snapshot cannot change tables",
            "begin the text with SELECT, WITH or FROM",
        )
    elif any(
        first[1] + second[1] == "|>" and third[1].lower() in _WRITING
        for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False)
    ):
        yield (
            "writes data in a pipe operator, but a snapshot cannot change tables",
            "remove the operator that writes",
        )


def reads_as_of(sql: str) -> bool:
    """Return True if the query reads a table as of the snapshot's time."""
    clause = re.compile(rf"\bfor system_time as of @{AS_OF}\b", re.IGNORECASE)
    return bool(clause.search(canonical_query(sql)))
