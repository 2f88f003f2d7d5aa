"""Recorded stories: YAML files of calls and answers. ``RECORD=1`` writes the answers of today."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Values that a service chooses itself.
CHOSEN = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r"\b[1-9]\d{15,20}\b", "DIGITS"),
    (r"\b(operation|cloud-ai-platform)-[0-9a-f]{8}\b", r"\1-HEX"),
    (r"\A(Bw|Qn)[\w+/-]{8,}=*\Z", "ETAG"),
    (r"\b0{8}[0-9a-f]{8}\b", "HEX"),
    (r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)([0-9a-f]{16}|[0-9a-f]{8})\b", "HEX"),
)
Step = dict[str, Any]


class Stories:
    """The stories of a folder, by file and name."""

    def __init__(self, folder: Path, answers: tuple[str, ...]) -> None:
        files = sorted(folder.glob("*.yaml"))
        self.documents = {file: yaml.load(file.read_text("utf-8"), LOADER) for file in files}
        self._answers = answers

    def parameters(self) -> list[Any]:
        return [
            pytest.param(file, name, id=f"{file.stem}: {name}")
            for file, document in self.documents.items()
            for name in document["stories"]
        ]

    def call(self, step: Step) -> Step:
        """The step without its answer."""
        return {key: value for key, value in step.items() if key not in self._answers}

    def check(self, file: Path, name: str, answer: Callable[[Step], Step]) -> None:
        """Compare the answers to a story's calls with the recorded ones."""
        document = self.documents[file]
        steps = document["stories"][name]
        found = [{**self.call(step), **answer(self.call(step))} for step in steps]
        if os.environ.get("RECORD"):
            document["stories"][name] = found
            write(file, document)
        else:
            assert found == steps


def strings_of(value: Any, change: Callable[[str], str]) -> Any:
    """The value with each string and each large number in it changed."""
    if isinstance(value, Mapping):
        return {key: strings_of(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [strings_of(each, change) for each in value]
    if type(value) is int and value >= 10**15:
        value = str(value)
    return change(value) if isinstance(value, str) else value


def worded(value: Any) -> Any:
    """The value with words for what a service chooses itself."""

    def change(text: str) -> str:
        for pattern, word in CHOSEN:
            text = re.sub(pattern, word, text)
        return text

    return strings_of(value, change)


def write(file: Path, document: dict[str, Any]) -> None:
    """Write stories: one step a list entry, in flow style."""

    def flow(value: Any) -> str:
        text = yaml.safe_dump(
            value, default_flow_style=True, width=160, sort_keys=False, allow_unicode=True
        )
        return text.removesuffix("...\n").strip().replace("\n", "\n   ")

    lines = [f"{key}: {flow(document[key])}" for key in ("region", "storage") if key in document]
    if "setup" in document:
        lines += ["setup:", *(f"- {flow(step)}" for step in document["setup"])]
    lines.append("stories:")
    for name, steps in document["stories"].items():
        lines += [f"  {flow(name)}:", *(f"  - {flow(step)}" for step in steps)]
    file.write_text("\n".join(lines) + "\n", "utf-8")
