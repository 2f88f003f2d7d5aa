"""What an option is where it is left out: every switch is off, and few options have a value."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from vertex_training_cli.help.table import VERBS
from vertex_training_cli.help.verbs import Verb

#: Verbs that say it to a person unless somebody asks for another form.
TEXT = {
    *("check", "import", "catalogue", "diff", "preflight", "jobs list", "jobs show"),
    *("jobs compare", "jobs logs", "jobs advance", "images list", "images check", "models list"),
    *("models show", "models compare", "endpoints list", "data ls", "data snapshots list"),
    "data snapshots diff",
}
VALUES: dict[str, Any] = {
    "render --format": "json",
    "review --format": "md",
    "iam --format": "table",
    # of a ladder, the request of the job file itself
    "render --rung": 1,
    # what makes or imports something does it for the local cloud
    "import --stack": "local",
    "new job --stack": "local",
    "local up --stack": "local",
    "local secret set --stack": "local",
    # nothing waits or costs for ever
    "jobs wait --deadline": "1h",
    "images build --timeout": "1h",
    "endpoints wait --deadline": "30m",
    "local fault wait --timeout": 60.0,
    "jobs wait --for": "succeeded",
    "jobs list --limit": 20,
    # where TensorBoard is everywhere
    "tensorboard --port": 6006,
    "local logs --replica": "workerpool0-0",
    # a fault is of the first call of any method, before it has an effect, for certain
    "local fault add --method": "*",
    "local fault add --when": "before",
    "local fault add --nth": 1,
    "local fault add --probability": 1.0,
    "local fault add --seed": 0,
    "local fault add --patch": "{}",
}


@functools.cache
def loaded() -> dict[str, Any]:
    return {path: Verb(path).load() for path in VERBS}


def options() -> Iterator[tuple[str, Any]]:
    for path, command in loaded().items():
        for each in command.params:
            yield f"{path} {each.opts[0]}", each


def test_an_option_that_is_left_out_has_a_value_of_its_own_if_it_needs_one() -> None:
    found = {
        name: getattr(each.default, "value", each.default)
        for name, each in options()
        if not getattr(each, "is_flag", False) and each.default not in (None, "", [], ())
    }
    assert found == VALUES | dict.fromkeys([f"{verb} --format" for verb in TEXT], "text")
