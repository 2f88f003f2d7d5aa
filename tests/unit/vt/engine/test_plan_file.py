"""A plan as a file: what is written, what is read of it, and what is refused in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vertex_training.errors import Location, Mend, PreviewParseError, Problem
from vertex_training_cli.engine import plan_file
from vertex_training_cli.engine.plan import Diagnostic, Plan, PolicyViolation, ResourceState, Step

URN = "urn:pulumi:dev::p::own:x:Y$a:b:C::x"
SOURCE = "Previewed against the local stack's state"
STATE = ResourceState({"a": [1, 2.5, None]}, {}, protect=True, id="i", retained=True)
PLAN = Plan(
    "dev",
    {"gcp:project": "x", "vertex-training:buckets": '{"b": 1}'},
    (Step("create", URN, "a:b:C", None, STATE, ("k",), ("p",)),),
    (Diagnostic("warning", "m", "u"),),
    (PolicyViolation("n", "p", "advisory", "m"),),
    {"pack": "1"},
    frozenset({"b", "a"}),
    {"n": "advisory"},
    succeeded=True,
)
DOCUMENT: dict[str, Any] = {
    "stack": "dev",
    "config": {"gcp:project": "x", "vertex-training:buckets": '{"b": 1}'},
    "steps": [
        {
            "op": "create",
            "urn": URN,
            "type": "a:b:C",
            "old": None,
            "new": {
                "inputs": {"a": [1, 2.5, None]},
                "outputs": {},
                "protect": True,
                "id": "i",
                "retained": True,
            },
            "keys": ["k"],
            "paths": ["p"],
            "deployed": None,
        }
    ],
    "diagnostics": [{"severity": "warning", "message": "m", "urn": "u"}],
    "violations": [
        {
            "policy": "n",
            "pack": "p",
            "level": "advisory",
            "message": "m",
            "urn": "",
            "severity": "",
        }
    ],
    "packs": {"pack": "1"},
    "policies": ["a", "b"],
    "levels": {"n": "advisory"},
    "succeeded": True,
    "version": 1,
    "source": SOURCE,
    "problems": [],
}


def changed(**keys: Any) -> bytes:
    return json.dumps(DOCUMENT | keys).encode()


def with_input(text: str) -> bytes:
    """The file with another input, as it is written."""
    return json.dumps(DOCUMENT).replace("[1, 2.5, null]", text).encode()


def step(**keys: Any) -> dict[str, Any]:
    return DOCUMENT["steps"][0] | keys


def refusal(content: bytes, stack: str = "dev") -> str:
    with pytest.raises(PreviewParseError) as refused:
        plan_file.parse(content, stack)
    return str(refused.value)


def reason(text: str) -> str:
    """The whole text of the error with this reason."""
    return str(PreviewParseError(text))


def test_what_mends_a_problem_is_not_written_and_its_texts_are_redacted() -> None:
    secret = "password=hunter2hunter2"
    mend = Mend("value", "hunter2")
    problem = Problem(secret, secret, secret, ("jobs", 0), Location("a.yaml", 3, 4), "r", mend=mend)
    text = plan_file.write(Plan("dev"), SOURCE, (problem,))
    assert "hunter2" not in text
    hidden = "password=[secret]"
    assert plan_file.parse(text.encode(), "dev").problems == (
        Problem(hidden, "[secret]", hidden, ("jobs", 0), Location("a.yaml", 3, 4), "r"),
    )


ONE = "the plan file has 1 invalid parts, the first "
OTHER_KEY = ONE + "an unknown key"


INVALID_NUMBER = "the plan file has a number that is too large or not finite"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "the plan file is not valid JSON"),
        (b"\xff", "the plan file is not valid UTF-8"),
        (b'{"a": 1, "a": 1}', "an object of the plan file has a duplicate key"),
        (b'{"\\udfff": 1}', "the plan file has a text with invalid Unicode"),
        (with_input('"\\ud800"'), "the plan file has a text with invalid Unicode"),
        (with_input("NaN"), INVALID_NUMBER),
        (with_input("1e999"), INVALID_NUMBER),
        (with_input("18446744073709551617"), INVALID_NUMBER),
        (with_input("[" * 36 + "]" * 36), "the plan file is nested deeper than 40 levels"),
        (b"[" * 200_000, "the plan file is nested deeper than 40 levels"),
        (changed(version=2), ONE + "in version"),
        (changed(steps=[step(type="a:b:D")]), OTHER_KEY),
        (changed(steps=[step(), step()]), OTHER_KEY),
        (changed(stack="prod", steps=[]), "the plan file belongs to another stack"),
    ],
)  # fmt: skip
def test_what_is_no_plan_of_the_stack_is_refused_without_a_word_of_it(
    content: bytes, text: str
) -> None:
    assert refusal(content) == reason(text)


def test_a_file_has_at_most_16_mebibytes() -> None:
    content = changed()
    whole = content + b" " * (16 * 1024 * 1024 - len(content))
    assert plan_file.parse(whole, "dev").plan == PLAN
    assert refusal(whole + b" ") == reason("the plan file has more than 16777216 bytes")
