"""Answers of a preflight as rows of ``tests/corpus/preflight``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from vertex_training_cli.preflight.context import Answer

CORPUS = Path(__file__).parents[3] / "corpus" / "preflight"
Row = dict[str, str]


def to_row(answer: Answer) -> Row:
    """Return the answer with its verdict as a key."""
    row = {
        "part": answer.part,
        "subject": answer.subject,
        "asked": answer.asked,
        answer.verdict.value: answer.answer,
        "meets": answer.meets,
        "mend": answer.mend,
        "permission": answer.permission,
    }
    return {key: value for key, value in row.items() if value}


def _flow(value: object) -> str:
    """Return a value on one line."""
    flow: Any = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True}
    text: str = yaml.safe_dump([value], width=10**6, **flow)
    return text.rstrip()[1:-1]


def _lines(cases: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each document, resource, option and answer."""
    for name, case in cases.items():
        yield f"{_flow(name)}:"
        for key, value in case.items():
            if not value or isinstance(value, (str, bool)):
                yield f"  {key}: {_flow(value)}"
                continue
            yield f"  {key}:"
            if isinstance(value, dict):
                yield from (f"    {_flow(each)}: {_flow(value[each])}" for each in value)
            else:
                yield from (f"  - {_flow(each)}" for each in value)


class Cases:
    """The cases of a file. ``RECORD=1`` (and ``-n 0``) writes their answers again."""

    def __init__(self, name: str) -> None:
        self.file = CORPUS / name
        self.by_name: dict[str, Any] = yaml.safe_load(self.file.read_text(encoding="utf-8"))

    def check(self, name: str, answers: Iterable[Answer]) -> None:
        """Compare the answers with those of the case, without the answers of the case ``but``."""
        case = self.by_name[name]
        usual = self.by_name[case["but"]]["answers"] if "but" in case else []
        rows = sorted((row for row in map(to_row, answers) if row not in usual), key=str)
        if os.environ.get("RECORD"):
            case["answers"] = rows
            text = "\n".join(_lines(self.by_name))
            self.file.write_text(f"{text}\n", encoding="utf-8")
        assert rows == case["answers"]
