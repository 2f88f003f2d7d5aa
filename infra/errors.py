"""How mistakes are told: what is wrong, where, with which value, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

#: A mistake in a stack's config: path below our namespace, what is wrong, value, hint.
Row = tuple[str, str, str, str]
Level = Literal["error", "warning"]
#: A value longer than this is cut in messages; nobody needs a whole script in an error line.
MAX_SHOWN = 80
#: No known word is longer; comparing a longer one would only cost time.
MAX_WORD = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in something a person wrote.

    ``where`` is a place an editor can open (``jobs/x.yaml:12:7``) or a path in a stack's
    config (``Pulumi.dev.yaml: vertex-training:buckets.data``). ``got`` is the offending value
    as text, empty if showing it adds nothing or the value could be a secret. ``rule`` is the id
    of the broken rule, as ``vt check --rules`` lists it; empty outside of job files.
    """

    where: str
    what: str
    got: str = ""
    hint: str = ""
    rule: str = ""
    level: Level = "error"

    def __str__(self) -> str:
        got = f" (got {shorten(self.got)})" if self.got else ""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{self.where}: {self.what}{got}.{hint}"


class ConfigError(Exception):
    """What a person wrote cannot be used. Carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def report(self) -> str:
        """All problems, one a line, under a line that counts them."""
        count = len(self.problems)
        head = "1 mistake" if count == 1 else f"{count} mistakes"
        return f"{head}; nothing was changed.\n{self}"


def shorten(text: str) -> str:
    """``text`` on one line, cut to what an error message can carry."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` was most likely meant to be, or None.

    >>> nearest("buckts", ["buckets", "images"])
    'buckets'
    """
    if len(word) > MAX_WORD:
        return None
    folded = {choice.lower(): choice for choice in sorted(known)}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    near = near or [name for name in folded if len(word) > 2 and name.startswith(word.lower())]
    return folded[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or else all of them; empty if none is known.

    >>> did_you_mean("buckts", ["buckets", "images"])
    "did you mean 'buckets'?"
    """
    choices = sorted(known)
    if near := nearest(word, choices):
        return f"did you mean '{near}'?"
    return f"known here: {', '.join(choices)}" if choices else ""
