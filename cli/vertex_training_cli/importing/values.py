"""Values that reading code gives: known ones, unknown ones, and known ones with a note.

One rule: what touches a value of a job and was not evaluated is an :class:`UnresolvedValue`, which
is written as ``<NAME>``, or a :class:`Note` with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import REQUEST_ID, Note

#: Longest text or list that is built: code may double a text line by line.
MAX_LENGTH: Final = 200_000
#: Values in one job at most, as in a job file.
MAX_VALUES: Final = 20_000
#: What makes a text depend on a value that is not known.
OPEN: Final = re.compile(r"<[A-Z0-9_]+>|" + re.escape(REQUEST_ID))
#: Key of the notes about a mapping as a whole.
ABOUT: Final = "\0about"


@dataclass(frozen=True, slots=True)
class UnresolvedValue:
    """A value that the syntax does not give; ``name`` is what the code calls it."""

    name: str
    optional: bool = False
    """Whether it is None unless somebody gives it, like an option without a default."""
    either: tuple[Any, ...] = ()
    """The values that it may have, where they are known."""

    def __str__(self) -> str:
        words = re.sub(r"[^A-Za-z0-9]+", "_", self.name).strip("_").upper() or "VALUE"
        return f"<{words if '_' in words else 'YOUR_' + words}>"

    def __deepcopy__(self, memo: object) -> UnresolvedValue:
        return self


@dataclass(frozen=True, slots=True)
class Noted:
    """A value and what has to be said where it is used. Names, lists and mappings hold them."""

    value: Any
    notes: frozenset[Note]


class Tuple(list[Any]):
    """A list that a text shows as a tuple."""


#: Methods of the client's jobs that send them.
SENDING: Final = ("run", "submit")
#: A member of a list that only holds notes about the whole list.
DROPPED: Final = UnresolvedValue("\0dropped")


@dataclass(slots=True, eq=False)
class ClientCall:
    """A job of the client: the class or method that made it, and all its options so far."""

    made_by: str
    options: dict[str, Any]
    place: str
    notes: set[Note] = field(default_factory=set)
    submitted: bool = False
    inner: bool = False
    """Whether it only is what a search runs."""

    def __deepcopy__(self, memo: object) -> ClientCall:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A method of jobs that was given another name, and is called by that."""

    jobs: tuple[ClientCall, ...]
    """The jobs that it may be of."""
    name: str
    unread: Note
    """What is said of the jobs until a call of it is read."""

    def __deepcopy__(self, memo: object) -> BoundMethod:
        return self

    def __str__(self) -> str:
        return f"a method {self.name}"


def jobs_of(value: Any) -> tuple[ClientCall, ...]:
    """The jobs that a value is, or may be."""
    either = value.either if isinstance(value, UnresolvedValue) else (value,)
    return tuple(each for each in either if isinstance(each, ClientCall))


def noted(value: Any, notes: Iterable[Note]) -> Any:
    """``value`` with ``notes``, if there are any."""
    if isinstance(value, Noted):
        value, notes = value.value, {*value.notes, *notes}
    return Noted(value, frozenset(notes)) if notes else value


def annotate(container: Any, notes: Iterable[Note]) -> None:
    """Add notes about a list or mapping as a whole, whichever name it is read by."""
    if isinstance(container, dict):
        container[ABOUT] = noted(container.get(ABOUT), notes)
    elif isinstance(container, list) and container:
        container[0] = noted(container[0], notes)
    elif isinstance(container, list):
        container.append(noted(DROPPED, notes))


def bare(value: Any) -> Any:
    """The value without its own notes."""
    return value.value if isinstance(value, Noted) else value


def is_certain(value: Any) -> bool:
    """Whether code can be decided by a value: no part of it is unknown."""
    if isinstance(value, str):
        return not OPEN.search(value)
    return value is None or isinstance(value, int | float)


def is_known(value: Any) -> bool:
    """Whether no part of a value is unknown, at any depth."""
    value = bare(value)
    if isinstance(value, list | dict):
        inside = value.values() if isinstance(value, dict) else value
        return not _is_longer(value, MAX_VALUES) and all(map(is_known, inside))
    return is_certain(value)


def truth(value: Any) -> bool | None:
    """Whether a value is true; None if that is not known."""
    if isinstance(value, dict):
        return any(key != ABOUT for key in value)
    if isinstance(value, list):
        return any(bare(item) is not DROPPED for item in value)
    if isinstance(value, str) and OPEN.search(value):
        return True if OPEN.sub("", value) else None
    if isinstance(value, ClientCall):
        return True
    return bool(value) if is_certain(value) else None


def text(value: Any) -> str:
    """A value within a text; what would make it too long is none of it.

    Lists in lists by name have a text that is longer than any memory: they are measured first.
    """
    if isinstance(value, list | dict):
        if _is_longer(value, MAX_LENGTH):
            return str(UnresolvedValue("long value"))
        return str(plain(value, tuples=True))
    return str(value)


def _is_longer(value: Any, most: int) -> bool:
    """Whether the text of a value has more than about ``most`` characters, in that many steps."""
    left = [value]
    while left and most >= 0:
        each = bare(left.pop())
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()][: most + 1]
        elif isinstance(each, list):
            left += each[: most + 1]
        most -= len(each) if isinstance(each, str) else 2
    return most < 0


def plain(value: Any, notes: set[Note] | None = None, *, tuples: bool = False) -> Any:
    """``value`` with a text for each unknown part; what was noted goes to ``notes``.

    Raises:
        CommandError: it is larger than any job; a few lines of code can nest one in another.
    """
    left, said = MAX_VALUES, set[Note]() if notes is None else notes

    def copied(inner: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise CommandError("a value in the code is larger than any job.")
        if isinstance(inner, Noted):
            said.update(inner.notes)
            return copied(inner.value)
        if isinstance(inner, dict):
            found = {key: copied(item) for key, item in inner.items()}
            return {key: item for key, item in found.items() if key != ABOUT}
        if isinstance(inner, list):
            items = [item for item in map(copied, inner) if item is not DROPPED]
            return tuple(items) if tuples and isinstance(inner, Tuple) else items
        if isinstance(inner, str | int | float | None) or inner is DROPPED:
            return inner
        return str(inner) if isinstance(inner, UnresolvedValue) else str(UnresolvedValue("value"))

    return copied(value)


class Merge:
    """What values are after one of two branches ran, and which one is not known.

    Lists and mappings stay those of the first branch, so that names for the same one still are.
    """

    def __init__(self, why: str, place: str) -> None:
        self.why, self._place = why, place
        self._done: dict[tuple[int, int], Any] = {}

    def names(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        """Merge two scopes into ``one``."""
        for name in list({**one, **other}):
            if name in one and name in other:
                one[name] = self.values(one[name], other[name], name)
            else:
                given = one[name] if name in one else other[name]
                one[name] = noted(given, {self.note(f"{name} is only set")})

    def note(self, what: str) -> Note:
        """A note that names the condition."""
        return Note(f"{what} by `{self.why}`, which cannot be decided", self._place)

    def values(self, one: Any, other: Any, name: str) -> Any:
        """A value of both branches, or what is said of two."""
        notes = {*(one.notes if isinstance(one, Noted) else ())}
        notes |= {*(other.notes if isinstance(other, Noted) else ())}
        one, other = bare(one), bare(other)
        if (id(one), id(other)) not in self._done:
            if isinstance(one, dict | list):
                self._done[id(one), id(other)] = (one, frozenset())
            self._done[id(one), id(other)] = self._merged(one, other, name)
        merged, more = self._done[id(one), id(other)]
        return noted(merged, notes | more)

    def _merged(self, one: Any, other: Any, name: str) -> tuple[Any, frozenset[Note]]:
        scalars = (is_certain(one) and is_certain(other)) or isinstance(one, UnresolvedValue | str)
        if one is other or (scalars and type(one) is type(other) and one == other):
            return one, frozenset()
        if isinstance(one, dict) and isinstance(other, dict):
            for key in list({**one, **other}):
                if key == ABOUT:
                    one[ABOUT] = noted(one.get(ABOUT), notes_of(other.get(ABOUT)))
                elif key in one and key in other:
                    one[key] = self.values(one[key], other[key], str(key))
                else:
                    given = one[key] if key in one else other[key]
                    one[key] = noted(given, {self.note(f"{key} is only there")})
            return one, frozenset()
        if isinstance(one, list) and isinstance(other, list):
            same = len(one) == len(other)
            for index in range(min(len(one), len(other))):
                one[index] = self.values(one[index], other[index], f"{name}[{index}]")
            one += other[len(one) :]
            if not same:
                annotate(one, {self.note(f"{name} has all {len(one)} items only")})
            return one, frozenset()
        options = tuple(
            part for each in (one, other) for part in (getattr(each, "either", ()) or (each,))
        )
        shown = " or ".join(dict.fromkeys(_shown(each) for each in options))
        note = Note(f"{name} is {shown}: `{self.why}` cannot be decided", self._place)
        return UnresolvedValue(name, either=options), frozenset({note})


def notes_of(value: Any) -> frozenset[Note]:
    """The notes that a value has itself."""
    return value.notes if isinstance(value, Noted) else frozenset()


def _shown(value: Any) -> str:
    if isinstance(value, ClientCall):
        return f"a {value.made_by}"
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'}"
    return repr(value)[:80] if is_certain(value) or isinstance(value, str) else str(value)
