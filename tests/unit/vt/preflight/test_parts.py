"""The parts of a preflight: in which order they are told, and what an odd answer spoils."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.vt.preflight.documents import context
from vertex_training_cli.preflight import parts
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.context import PreflightContext

ODD, FINE = question("odd", "a"), question("fine", "b")
URL = "https://compute.googleapis.com/compute/v1/x"


def told(monkeypatch: pytest.MonkeyPatch, documents: Any = None, **asked: Any) -> list[Answer]:
    monkeypatch.setattr(parts, "PARTS", asked)
    return parts.ask_all(context(documents))


def of(part: str, *answers: Answer) -> list[Answer]:
    return [dataclasses.replace(each, part=part) for each in answers]


def test_a_preflight_has_these_parts_in_this_order() -> None:
    modules = [(name, each.__module__.rpartition(".")[2]) for name, each in parts.PARTS.items()]
    assert modules == [
        ("project", "identity"),
        ("rights", "rights"),
        ("names", "names"),
        ("images", "images"),
        ("organization policies", "organization_policies"),
        ("quotas", "quotas"),
        ("networks", "networks"),
        ("reservations", "reservations"),
    ]


def test_parts_ask_beside_each_other_and_are_told_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = threading.Event()

    def first(_: PreflightContext) -> Iterator[Answer]:
        assert begun.wait(30)  # set by the second, which is asked meanwhile
        yield ODD.ok("1")

    def second(_: PreflightContext) -> Iterator[Answer]:
        begun.set()
        yield FINE.ok("2")
        yield FINE.ok("3")

    found = told(monkeypatch, one=first, two=second)
    assert found == [*of("one", ODD.ok("1")), *of("two", FINE.ok("2"), FINE.ok("3"))]


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda found: found["name"], "KeyError: 'name'"),
        (lambda found: found["list"][3], "IndexError: list index out of range"),
        (lambda found: int(found["text"]),
         "ValueError: invalid literal for int() with base 10: 'x'"),
        (lambda found: found["number"].get("x"), "AttributeError: 'int' object has no attribute "
                                                 "'get'"),
        (lambda found: len(found["number"]), "TypeError: object of type 'int' has no len()"),
    ],
)  # fmt: skip
def test_an_answer_of_another_form_is_one_line_and_the_rest_is_asked(
    monkeypatch: pytest.MonkeyPatch, read: Any, reason: str
) -> None:
    def ask(made: PreflightContext) -> Iterator[Answer]:
        yield FINE.ok("before")
        found = made.client.get(URL, ODD, "x.get")
        yield found if isinstance(found, Answer) else ODD.ok(str(read(found)))
        yield FINE.ok("after")

    documents = {URL: {"list": [1], "text": "x", "number": 5}}
    assert told(monkeypatch, documents, part=ask) == of(
        "part", FINE.ok("before"), ODD.unknown(f"could not be read: {reason}"), FINE.ok("after")
    )


def test_a_mistake_that_no_answer_made_ends_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_: PreflightContext) -> Iterator[Answer]:
        yield FINE.ok("before")
        raise KeyError("location")

    def other(_: PreflightContext) -> Iterator[Answer]:
        yield FINE.ok("other")

    rest = question("part", "the rest of this part")
    assert told(monkeypatch, part=ask, next=other) == [
        *of("part", FINE.ok("before"), rest.unknown("could not be read: KeyError: 'location'")),
        *of("next", FINE.ok("other")),
    ]
