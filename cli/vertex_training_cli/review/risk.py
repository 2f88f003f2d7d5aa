"""A kind of risk: what finds it in a plan, and its words in the verdict, an answer and a list.

The module that finds a kind declares it; ``report.RISKS`` lists all. Verdict, answers, sections and
JSON are written from that list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from vertex_training_cli.engine.plan import Plan

Finding = TypeVar("Finding")

#: Questions of an approver that kinds of risk answer (``headline`` has all twelve).
RUNS: Final = "what runs"
LOST: Final = "what is lost"
PUBLIC: Final = "what becomes public"
LIMITS: Final = "which limits are raised"
POLICIES: Final = "what policies say"
COSTS: Final = "what it can cost"
RIGHTS: Final = "who gains a right"
READABLE: Final = "whose data becomes readable"
#: Names in one part of a sentence; more are counted.
NAMED: Final = 3
#: What something means for who approves it; the page colours it: nothing, amber, red.
Danger = Literal["plain", "opens", "destroys"]


class Quote(Protocol):
    """Makes a name or a value harmless for where it is shown."""

    def __call__(self, value: str, length: int = ..., /) -> str:
        """``value``, cut to ``length`` where space is short."""
        ...


#: Words for one finding.
Words = Callable[[Any, Quote], str]


@dataclass(frozen=True, slots=True)
class RiskKind(Generic[Finding]):
    """One kind of risk; what it finds is of one type."""

    find: Callable[[Plan], Sequence[Finding]]
    name: Words
    """Words for a finding in the verdict and in its answer."""
    key: str = ""
    """Where JSON has the findings, like ``policies.lowered``; empty if another key has them."""
    headline: str = ""
    """What the verdict says before the names; empty if it says nothing."""
    question: str = ""
    """The question that the findings answer."""
    answer: str = "{}"
    """A finding's place in the answer."""
    line: Words | None = None
    """Words for a finding in the section of what is lost; None if another section has it."""
    danger: Danger = "destroys"


def first(names: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    left = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {left} more" if left > 0 else "")


def told_alike(
    find: Callable[[Plan], Sequence[Finding]],
    name: Words,
    key: str,
    headline: str,
    question: str = LIMITS,
    danger: Danger = "opens",
) -> RiskKind[Finding]:
    """A kind in the same words everywhere: ``headline: name``."""
    return RiskKind(
        find,
        name,
        key=key,
        headline=headline,
        question=question,
        answer=f"{headline}: {{}}",
        line=lambda each, quote: f"{headline}: {name(each, quote)}",
        danger=danger,
    )
