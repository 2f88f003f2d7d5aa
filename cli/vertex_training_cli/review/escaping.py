"""Names and values made harmless: none becomes markup, a link, a mention or a hidden character."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: Longer values are cut; the field diff of the JSON report has them in full.
MAX_SHOWN: Final = 160


def visible(value: str) -> str:
    """``value`` on one line, with invisible and direction-changing characters spelt out.

    >>> visible("a\\n b\\u202e")
    'a b\\\\u202e'
    """
    line = " ".join(value.split())
    if line.isprintable():  # tens of thousands of values, hardly one of which is not
        return line
    return "".join(_spelt(character) for character in line)


def cut(value: str, length: int = MAX_SHOWN) -> str:
    """``value`` as :func:``visible`` has it, its end left out if it is longer than ``length``."""
    line = visible(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def code(value: str, length: int = MAX_SHOWN) -> str:
    """``value`` as code in Markdown, also inside of a table.

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
    """Several lines as a block of code in Markdown."""
    lines = [visible(line) for line in value.splitlines()]
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def label(value: str) -> str:
    """``value`` inside of a quoted label of a Mermaid picture."""
    return re.sub(r"[^\w \-./]", lambda match: f"#{ord(match[0])};", cut(value, 60))


def _spelt(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character
