"""A mutant: an exact text of the source, and its replacement.

A text that is not there exactly once is an error, so mutants cannot outlive what they mutate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


class StaleMutantError(Exception):
    """The source does not contain the mutant's text exactly once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``module`` without ``step``: ``old`` is replaced by ``new``."""

    name: str
    step: str
    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        """The file to mutate, which is only read."""
        return (
            ROOT / "infra" / "vertex_training" / "customjob" / f"{self.module.replace('.', '/')}.py"
        )

    def source(self) -> str:
        """Return the mutated source. Raises StaleMutantError."""
        source = self.path.read_text()
        if (count := source.count(self.old)) != 1:
            raise StaleMutantError(
                f"{self.name}: its text stands {count} times in {self.path.name}"
            )
        return source.replace(self.old, self.new)


def of(module: str, step: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Return the mutants of one step, from (name, old, new)."""
    return [Mutant(name, step, module, old, new) for name, old, new in changes]
