"""``# vt: ignore[rule] reason``: a finding that a job file's author has judged already.

It holds for its own line, or for the next one if it has a line to itself. What it hides is a note,
with the reason, and stands in the review. It is for what a file alone says: the fit to a stack,
a stack's limits and access are not a job file's to ignore.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob import rules
from vertex_training.errors import Location, Problem, did_you_mean
from vertex_training.located_yaml.document import MAX_PROBLEMS

COMMENT: Final = re.compile(
    r"(?P<before>.*?)(?:^|\s)#\s*vt:\s*ignore(?:\[(?P<rule>[^\]]*)\])?(?P<why>.*)"
)
RULE: Final = "ignore"
#: Fewest characters of a reason.
SHORTEST: Final = 8
#: Rules that keep others safe.
KEPT: Final = frozenset(("service-account", "label-reserved", "job-region"))
#: Rules that a file may ignore: those about a message that could be read.
IGNORABLE: Final = frozenset(
    rule.id for rule in rules.RULES if rule.subject not in rules.OF_A_STACK and rule.id not in KEPT
)
LENIENT: Final = frozenset(("no-value", "lone-value", "pool-list"))


@dataclass(frozen=True, slots=True)
class IgnoreComment:
    """A comment that ignores a rule on ``line``."""

    rule: str
    reason: str
    line: int
    location: Location


def comments_in(text: str, file: str) -> tuple[list[IgnoreComment], list[Problem]]:
    """The comments of a file, and what is wrong with some of them."""
    found, problems = list[IgnoreComment](), list[Problem]()
    for number, line in enumerate(text.splitlines(), start=1):
        if "vt:" not in line or not (match := COMMENT.match(line)):
            continue
        location = Location(file, number, match.end("before") + 1)
        name, reason = (match["rule"] or "").strip(), match["why"].strip()
        if problem := _mistake(name, reason):
            what, hint = problem
            problems.append(Problem(what, name, hint, location=location, rule=RULE))
        else:
            alone = not match["before"].strip()
            found.append(IgnoreComment(name, reason, number + alone, location))
    return found, problems[:MAX_PROBLEMS]


def apply(
    problems: Iterable[Problem], text: str, file: str
) -> tuple[list[Problem], tuple[Problem, ...]]:
    """All problems, with what is ignored as notes; and those notes alone."""
    if "vt:" not in text:
        return list(problems), ()
    comments, mistakes = comments_in(text, file)
    found, ignored, used = list[Problem](), list[Problem](), set[IgnoreComment]()
    for problem in problems:
        comment = next((c for c in comments if _hides(c, problem)), None)
        if comment is None:
            found.append(problem)
            continue
        used.add(comment)
        what = f"{problem.what} (ignored: {comment.reason})"
        ignored.append(dataclasses.replace(problem, what=what, hint="", level="note"))
    return [*found, *mistakes, *_unused(comments, used), *ignored], tuple(ignored)


def _hides(comment: IgnoreComment, problem: Problem) -> bool:
    return comment.rule == problem.rule and comment.line == problem.location.line


def _mistake(name: str, reason: str) -> tuple[str, str] | None:
    form = "# vt: ignore[image-pinned] rebuilt by hand each night"
    known = IGNORABLE | LENIENT
    if not name:
        return "names no rule", form
    if name not in known:
        if any(rule.id == name for rule in rules.ALL):
            return "this rule cannot be ignored in a job file", "correct what it reports"
        return "no such rule", did_you_mean(name, sorted(known))
    if len(reason) < SHORTEST:
        return "gives no reason", form
    return None


def _unused(comments: list[IgnoreComment], used: set[IgnoreComment]) -> Iterator[Problem]:
    for comment in comments:
        if comment not in used:
            yield Problem(
                "ignores nothing: the rule finds nothing here", comment.rule, "remove it",
                location=comment.location, rule=RULE, level="note",
            )  # fmt: skip
