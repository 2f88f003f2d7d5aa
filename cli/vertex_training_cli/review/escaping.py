"""Names and values made harmless: none becomes markup, a link, a mention or a hidden character."""

from __future__ import annotations

import re
from typing import Final

from vertex_training_cli.console import is_seen

#: Longer values are cut; the field diff of the JSON report has them in full.
MAX_SHOWN: Final = 160

#: What reports add to names themselves.
OWN: Final = "…→"
#: What is before and after a word.
_EDGES: Final = re.compile(r"\A\W+|\W+\Z")
#: Scripts without blanks between words: a sentence is one word, and no letter is like a Latin one.
_EAST_ASIAN: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


def visible(value: str) -> str:
    """Return ``value`` on one line, with invisible characters spelt out, and names in ASCII.

    Names of Google Cloud, of Pulumi and of people are ASCII, so another letter in one only looks
    like it. A single word is a name, and so is one that mixes ASCII with other than Latin letters.

    >>> visible("a\\n b\\u202e"), visible("of b\\u0430nk")
    ('a b\\\\u202e', 'of b\\\\u0430nk')
    >>> visible("Größe, 3 €")
    'Größe, 3 €'
    """
    words = value.split()
    line = " ".join(words)
    if line.isascii() and line.isprintable():  # tens of thousands of values, nearly all of them
        return line
    return " ".join(_visible_word(word, is_name=len(words) == 1) for word in words)


def _visible_word(word: str, *, is_name: bool) -> str:
    if word.isascii() and word.isprintable():
        return word
    bare = _EDGES.sub("", word)
    is_name = not _EAST_ASIAN.fullmatch(bare) and (is_name or not _is_prose(bare))
    return "".join(
        char if is_seen(char) and (char.isascii() or not is_name or char in OWN) else _spelt(char)
        for char in word
    )


def _is_prose(word: str) -> bool:
    """Return whether a word is all of another script, or of Latin letters with accents."""
    latin = (char in "-'\u2019" or (char.isalpha() and char <= "\u024f") for char in word)
    return not any(map(str.isascii, word)) or all(latin)


def cut(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``value`` as :func:``visible`` does, cut to ``length`` characters."""
    line = visible(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def code(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``value`` as code in Markdown, also inside of a table.

    In code nothing is a mention, a link or an emoji. A pipe would end a table's cell and a
    backtick the code, whatever stands before it; with either in it, HTML's entities do it.
    """
    line = cut(value, length)
    if not line:
        return ""
    if "|" in line or "`" in line or line.endswith("\\"):
        entities = re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", line)
        return f"<code>{entities}</code>"
    return f"`{line}`"


def block(value: str) -> str:
    """Return several lines as a block of code in Markdown."""
    lines = [visible(line) for line in value.splitlines()]
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def label(value: str) -> str:
    """Return ``value`` for a quoted label of a Mermaid picture."""
    return re.sub(r"[^\w \-./]", lambda match: f"#{ord(match[0])};", cut(value, 60))


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
