"""Expressions for tests, evaluated over a few names that are known."""

from __future__ import annotations

import ast
import copy
from typing import Any

from vertex_training_cli.importing.evaluation import Evaluator
from vertex_training_cli.importing.values import plain

NAMES: dict[str, Any] = {
    "n": 7,
    "s": "gs://b/x.txt",
    "lst": ["a", "b"],
    "m": {"k": "v", "n": 3},
    "e": "",
    "none": None,
}


def evaluated(expression: str, **names: Any) -> tuple[Any, list[str]]:
    """The value, with a text for each open part, and what is said of it."""
    evaluator = Evaluator()
    evaluator.label = "code"
    evaluator.scopes = [{**copy.deepcopy(NAMES), **names}]
    value = plain(evaluator.value(ast.parse(expression, mode="eval").body), evaluator.notes)
    return value, sorted(map(str, evaluator.notes))
