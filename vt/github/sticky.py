"""One text in one place: a comment or an issue that is found again and written anew.

Each carries a marker that Markdown does not show. Only what a bot wrote is taken for ours: anybody
may write a comment, and put a marker into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from infra.errors import CommandError

#: Who GitHub says wrote what a workflow wrote with its own token.
AUTHOR = "github-actions[bot]"
#: GitHub refuses a longer body, https://docs.github.com/rest/issues/comments: 65,536 characters
MAX_BODY = 65_536


def marker(kind: str, stack: str) -> str:
    """What a text of this kind for this stack begins with."""
    return f"<!-- vt:{kind} {stack} -->"


def body(kind: str, stack: str, *texts: str) -> str:
    """The text as it is stored.

    Raises:
        CommandError: GitHub would refuse it.
    """
    whole = "\n".join([marker(kind, stack), *(text.rstrip("\n") for text in texts if text)]) + "\n"
    if len(whole) > MAX_BODY:
        raise CommandError(f"the text has {len(whole)} characters, and GitHub takes {MAX_BODY}.")
    return whole


def ours(entries: Iterable[Mapping[str, Any]], kind: str, stack: str) -> Mapping[str, Any] | None:
    """The oldest of comments or issues that is ours, or None."""
    begin = marker(kind, stack)
    mine = [
        entry
        for entry in entries
        if (entry.get("user") or {}).get("login") == AUTHOR
        and (entry.get("body") or "").startswith(begin)
        and "pull_request" not in entry  # GitHub lists pull requests among issues
    ]
    return min(mine, key=lambda entry: entry["id"], default=None)
