"""As much of a config as is valid, so that one report has mistakes of form and across keys. Pure.

What the model refuses is removed until the rest is valid. Rules then judge the rest; what they say
about a removed part, or because of it, is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pydantic

from vertex_training.errors import Path, Problem, nearest
from vertex_training.settings import reader
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import Schema

#: Stand for keys that every name needs, where the file has none that can be used.
STAND_INS: Final = {
    "project": "placeholder",
    "region": "us-central1",
    "projectNumber": "100000000000",
    "stack": "placeholder",
}
#: Sections that rules judge by all of their keys and by each other.
JOINED: Final = ("network", "sharedVpc")
#: Sections that rules compare with the project and the region.
REGIONAL: Final = (*JOINED, "reservations", "encryption")
#: Key of an entry -> section that it names.
NAMED_BY: Final = {
    **{"reads": "buckets", "writes": "buckets", "secrets": "secrets", "team": "teams"},
    **{"job": "jobs", "model": "models", "account": "serviceAccounts", "bucket": "buckets"},
}


@dataclass(frozen=True)
class PartialSettings:
    """Settings without the parts that are wrong."""

    settings: Settings | None
    """None if nothing could be saved."""
    problems: tuple[Problem, ...]
    """Mistakes of form, at the stack file, without lines."""
    removed: frozenset[Path] = frozenset()
    """What the settings lack, by path below the namespace."""

    def concerns_removed(self, problem: Problem) -> bool:
        """Whether a rule's problem is about a removed part, or follows from its removal."""
        top = problem.path[0] if problem.path else ""
        for path in self.removed:
            section = path[0]
            if problem.path[: len(path)] == path or (top == section and top in JOINED):
                return True
            if section in JOINED and top in JOINED:
                return True
            if section in STAND_INS and (top in REGIONAL or top in STAND_INS):
                return True
            if section == "reservations" and problem.path[:2] == path[:2]:
                return True  # an entry is judged by all of its keys
            names = next((part for part in problem.path if part in NAMED_BY), "")
            if NAMED_BY.get(str(names)) == section and path[1:2] in ((), (problem.value,)):
                return True
        return False


def read(schema: Schema[Settings], raw: Mapping[str, Any]) -> PartialSettings:
    """The settings of ``raw`` as far as they are valid, and every mistake of form."""
    problems: list[Problem] = list(getattr(raw, "problems", ()))
    rest, removed = copy.deepcopy(dict(raw)), _misplaced(schema, problems)
    for attempt in range(10):  # a removal may break its parent: nesting is less deep than this
        try:
            return PartialSettings(
                schema.model.model_validate(rest), tuple(problems), frozenset(removed)
            )
        except pydantic.ValidationError as failed:
            if attempt == 0:
                problems += reader.form_problems(schema, raw, failed)
            for path, meant in _refused(schema, failed):
                _remove(rest, path)
                removed |= {path, *meant}
    return PartialSettings(None, tuple(problems))


def _misplaced(schema: Schema[Settings], problems: list[Problem]) -> set[Path]:
    """Sections that stand in another namespace, or twice: what they have is not in the config."""
    keys = (str(problem.path[0]) if problem.path else problem.value for problem in problems)
    sections = (key.rpartition(":")[2] for key in keys if ":" in key)
    return {(section,) for section in sections if section in schema.fields}


def _refused(
    schema: Schema[Settings], failed: pydantic.ValidationError
) -> Iterator[tuple[Path, list[Path]]]:
    """What to remove, and what else is thereby missing: the key that a misspelled one meant."""
    for error in failed.errors():
        path = tuple(part for part in error["loc"] if part != "[key]")
        if error["type"] == "missing" and len(path) > 1:
            path = path[:-1]
        # An entry of a list would change the places of the others: the list goes as a whole.
        index = next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))
        path = path[:index]
        meant = nearest(str(path[0]), schema.fields) if len(path) == 1 else None
        is_unknown = error["type"] == "extra_forbidden" and meant
        yield path, [(meant,)] if is_unknown and meant else []


def _remove(rest: dict[str, Any], path: Path) -> None:
    """Remove the value at ``path``; a key that must be there gets its stand-in."""
    *parents, last = path
    inside: Any = rest
    for part in parents:
        inside = inside.get(part) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        inside.pop(last, None)
    if not parents and last in STAND_INS:
        rest[str(last)] = STAND_INS[str(last)]
