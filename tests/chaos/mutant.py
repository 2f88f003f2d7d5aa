"""A mutant: an exact text of the source, and what stands in its place.

A text that is not there exactly once is an error, so mutants cannot outlive what they mutate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


class StaleMutantError(Exception):
    """The source no longer contains, exactly once, what the mutant replaces."""


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
        """The file that is mutated; it is only read."""
        return (
            ROOT / "infra" / "vertex_training" / "customjob" / f"{self.module.replace('.', '/')}.py"
        )

    def source(self) -> str:
        """The mutated source. Raises StaleMutantError."""
        source = self.path.read_text()
        if (count := source.count(self.old)) != 1:
            raise StaleMutantError(
                f"{self.name}: its text stands {count} times in {self.path.name}"
            )
        return source.replace(self.old, self.new)


def of(module: str, step: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """The mutants of one step: (name, old, new) each."""
    return [Mutant(name, step, module, old, new) for name, old, new in changes]
