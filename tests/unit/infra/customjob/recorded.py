"""Values of recorded corpora: names that stand for parts of them, answers in turn, and one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml


def in_turn(*values: Any) -> Callable[..., Any]:
    """Return a function that returns the values one after the other, the last one repeatedly."""
    left = list(values)
    return lambda *_: left.pop(0) if len(left) > 1 else left[0]


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    """Return an entry's value with its names replaced."""
    match value:
        case str() if value.startswith("$") and value[1:] in names:
            return filled(names[value[1:]], names)
        case str():
            return re.sub(r"\$([A-Z]+)", lambda found: filled(names[found[1]], names), value)
        case {"$": name, **changes}:
            return {**filled(names[name], names), **filled(changes, names)}
        case dict():
            return {key: filled(each, names) for key, each in value.items()}
        case list():
            return [filled(each, names) for each in value]
    return value


class Lines(yaml.SafeDumper):
    """Writes a value in one line."""

    def represent_str(self, data: str) -> Any:
        style = '"' if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


Lines.add_representer(str, Lines.represent_str)


def line(value: Any) -> str:
    text = yaml.dump(
        value, Dumper=Lines, default_flow_style=True, width=10**6, sort_keys=False,
        allow_unicode=True,
    )  # fmt: skip
    return text.removesuffix("\n").removesuffix("\n...")
