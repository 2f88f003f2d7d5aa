"""Escapes names and values, so that no markup, links, mentions or invisible characters remain."""

from __future__ import annotations

import re
from typing import Final

from vertex_training_cli.console import is_seen

#: Maximum length of a shown value. The JSON report has full values.
MAX_SHOWN: Final = 160

#: Characters that reports add to names, and that are not escaped.
OWN: Final = "…→"
#: Punctuation before and after a word.
_EDGES: Final = re.compile(r"\A\W+|\W+\Z")
#: Scripts without blanks between words and without letters that resemble Latin letters.
_EAST_ASIAN: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


def visible(value: str) -> str:
    """Return ``value`` on one line, with invisible characters spelled out, and names in ASCII.

    Names in Google Cloud and Pulumi are ASCII, so that another letter in a name is a look-alike. A
    single word is a name, and a word that mixes ASCII with letters other than Latin is a name.

    >>> visible("a\\n b\\u202e"), visible("of b\\u0430nk")
    ('a b\\\\u202e', 'of b\\\\u0430nk')
    >>> visible("Größe, 3 €")
    'Größe, 3 €'
    """
    words = value.split()
    line = " ".join(words)
    if line.isascii() and line.isprintable():  # nearly all values
        return line
    return " ".join(_visible_word(word, is_name=len(words) == 1) for word in words)


def _visible_word(word: str, *, is_name: bool) -> str:
    if word.isascii() and word.isprintable():
        return word
    bare = _EDGES.sub("", word)
    is_name = not _EAST_ASIAN.fullmatch(bare) and (is_name or not _is_prose(bare))
    return "".join(
        char
        if is_seen(char) and (char.isascii() or not is_name or char in OWN)
        else _escape_sequence(char)
        for char in word
    )


def _is_prose(word: str) -> bool:
    """Return whether a word is in one script other than Latin, or in Latin letters with accents."""
    latin = (char in "-'\u2019" or (char.isalpha() and char <= "\u024f") for char in word)
    return not any(map(str.isascii, word)) or all(latin)


def cut(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``visible(value)``, cut to ``length`` characters."""
    line = visible(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def code(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``value`` as code in Markdown, which is also valid in a table.

    Code has no mentions, links or emoji. A pipe would end a table's cell, and a backtick the code,
    even after a backslash. Such values are written as HTML entities.
    """
    line = cut(value, length)
    if not line:
        return ""
    if "|" in line or "`" in line or line.endswith("\\"):
        entities = re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", line)
        return f"<code>{entities}</code>"
    return f"`{line}`"


def block(value: str) -> str:
    """Return lines as a block of code in Markdown."""
    lines = [visible(line) for line in value.splitlines()]
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def label(value: str) -> str:
    """Return ``value`` for a quoted label of a Mermaid graph."""
    return re.sub(r"[^\w \-./]", lambda match: f"#{ord(match[0])};", cut(value, 60))


def _escape_sequence(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
