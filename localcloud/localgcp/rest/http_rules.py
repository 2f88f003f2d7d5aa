"""Rules of ``google.api.http``: which request of HTTP is a call of which method (pure).

Source: google/api/http.proto. A path is a template such as
``/v1/{name=projects/*/locations/*/customJobs/*}:cancel``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_FILE: Final = Path(__file__).with_name("http_rules.json")
_VARIABLE: Final = re.compile(r"\{([\w.]+)(?:=([^}]+))?\}")


@dataclass(frozen=True)
class HttpRule:
    """One way to call ``method`` (``PACKAGE.SERVICE/METHOD``) over HTTP."""

    method: str
    verb: str
    template: str
    body: str
    """The field that the body is; ``*``: the whole request; empty: there is no body."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Paths of the fields that the template has."""
        return tuple(each[1] for each in _VARIABLE.finditer(self.template))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text, end = "", 0
        for each in _VARIABLE.finditer(self.template):
            text += re.escape(self.template[end : each.start()]) + f"({_segments(each[2] or '*')})"
            end = each.end()
        return re.compile(text + re.escape(self.template[end:]))

    def match(self, verb: str, path: str) -> dict[str, str] | None:
        """Values of the template's fields; None if the request is another one."""
        found = self._pattern.fullmatch(path) if verb == self.verb else None
        if found is None:
            return None
        return {
            name: _decoded(value) for name, value in zip(self.fields, found.groups(), strict=True)
        }


def _segments(pattern: str) -> str:
    parts = {"*": "[^/]+", "**": ".+"}
    return "/".join(parts.get(part, re.escape(part)) for part in pattern.split("/"))


def _decoded(value: str) -> str:
    """Decoded, but for encoded slashes: they are no borders of segments."""
    return "%2F".join(unquote(part) for part in re.split("%2[Ff]", value))


def load_rules(file: Path = _FILE) -> tuple[HttpRule, ...]:
    """The rules of ``http_rules.json``, in the order in which they are tried."""
    return tuple(
        HttpRule(method, rule["verb"], rule["path"], rule.get("body", ""))
        for method, rules in json.loads(file.read_text())["methods"].items()
        for rule in rules
    )


def find(rules: Iterable[HttpRule], verb: str, path: str) -> tuple[HttpRule, dict[str, str]] | None:
    """The first rule that fits, with the fields of its path."""
    for rule in rules:
        fields = rule.match(verb, path)
        if fields is not None:
            return rule, fields
    return None
