"""The parts of a preflight: in which order they are told, and what an odd answer spoils."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.vt.preflight.documents import context
from vertex_training_cli.preflight import command
from vertex_training_cli.preflight.context import Answer, PreflightContext, question

ODD, FINE = question("odd", "a"), question("fine", "b")


def told(monkeypatch: pytest.MonkeyPatch, documents: Any = None, **asked: Any) -> list[Answer]:
    monkeypatch.setattr(command, "PARTS", asked)
    return command.check_all(context(documents))


def of(part: str, *answers: Answer) -> list[Answer]:
    return [dataclasses.replace(each, part=part) for each in answers]


def test_a_mistake_that_no_answer_made_ends_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_: PreflightContext) -> Iterator[Answer]:
        yield FINE.ok("before")
        raise KeyError("location")

    def other(_: PreflightContext) -> Iterator[Answer]:
        yield FINE.ok("other")

    rest = question("part", "further checks of this part")
    text = "a response has an unexpected form: KeyError: 'location'"
    assert told(monkeypatch, part=ask, next=other) == [
        *of(
            "part",
            FINE.ok("before"),
            rest.unknown(text),
        ),
        *of("next", FINE.ok("other")),
    ]
