"""One text in one place: a comment or an issue that is found again and written anew.

Each carries a marker that Markdown does not show. Only what a bot wrote is taken for ours: anybody
may write a comment, and put a marker into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.engine.values import redact

#: The author, for GitHub, of what a workflow writes with its own token.
AUTHOR: Final = "github-actions[bot]"
#: GitHub refuses a longer body, https://docs.github.com/rest/issues/comments: 65,536 characters
MAX_BODY: Final = 65_536


def marker(kind: str, stack: str) -> str:
    """What a text of this kind for this stack begins with."""
    return f"<!-- vt:{kind} {stack} -->"


def body(kind: str, stack: str, *texts: str) -> str:
    """The text as it is stored, with what looks like a secret redacted.

    Raises:
        CommandError: GitHub would refuse it.
    """
    parts = [marker(kind, stack), *(redact(text.rstrip("\n")) for text in texts if text)]
    whole = "\n".join(parts) + "\n"
    if len(whole) > MAX_BODY:
        raise CommandError(f"the text has {len(whole)} characters, and GitHub takes {MAX_BODY}.")
    return whole


def find_own(
    entries: Iterable[Mapping[str, Any]], kind: str, stack: str
) -> Mapping[str, Any] | None:
    """The oldest of these comments or issues that a workflow wrote for ``stack``, or None."""
    begin = marker(kind, stack)
    own = [
        entry
        for entry in entries
        if (entry.get("user") or {}).get("login") == AUTHOR
        and (entry.get("body") or "").startswith(begin)
        and "pull_request" not in entry  # GitHub lists pull requests among issues
    ]
    return min(own, key=lambda entry: entry["id"], default=None)
