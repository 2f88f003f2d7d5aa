"""A query of GoogleSQL as text: comments, parameters and its form. Pure; it parses no grammar.

https://docs.cloud.google.com/bigquery/docs/reference/standard-sql/lexical
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.settings.snapshots import AS_OF

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


def canonical(sql: str) -> str:
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
    """What keeps it from being one query, each with a hint."""
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
    """Whether it reads a table as of the snapshot's time."""
    found = re.compile(rf"\bfor system_time as of @{AS_OF}\b", re.IGNORECASE)
    return bool(found.search(canonical(sql)))
