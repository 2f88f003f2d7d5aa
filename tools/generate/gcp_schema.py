"""Write ``localcloud/localgcp/gcp/schema.json`` from the schema of a pulumi-gcp plugin.

    pulumi package get-schema gcp@VERSION > SCHEMA.json
    .venv/bin/python -m tools.generate.gcp_schema SCHEMA.json          rewrite the file
    .venv/bin/python -m tools.generate.gcp_schema SCHEMA.json --check  exit 1 if it would change

The file keeps its resource types; their properties follow the plugin. A package schema
(https://www.pulumi.com/docs/iac/using-pulumi/extending-pulumi/schema/) has less than the file: no
Terraform names or defaults, no sets, no rules between properties, and not what the cloud returns.
Such fields are kept from the file. A new property has none to keep: it gets what the plugin says
and a Terraform name by the bridge's convention, which ``assumed`` in its row lists and a note
reports. Measure these, then delete ``assumed``.

The tests use small documents in the format of a package schema. This has not run on the schema of
the real plugin.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from tools.generate.editor_forms import snake

TARGET: Final = Path(__file__).parents[2] / "localcloud/localgcp/gcp/schema.json"

#: Fields of a row in the order in which the file has them.
FIELDS: Final = (
    "name", "tf", "type", "required", "optional", "computed", "forceNew", "default", "minItems",
    "exactlyOneOf", "autoName", "values", "pulumiDefault", "conflictsWith", "maxItems", "sensitive",
    "unset", "assumed",
)  # fmt: skip
#: Fields that a package schema does not have.
KEPT: Final = (
    "tf", "default", "minItems", "maxItems", "exactlyOneOf", "conflictsWith", "autoName", "values",
    "unset", "assumed",
)  # fmt: skip
#: A type in a package schema -> in the file.
SCALARS: Final = {"string": "string", "boolean": "bool", "integer": "int", "number": "number"}
ASSETS: Final = ("pulumi.json#/Asset", "pulumi.json#/Archive")
#: A type may contain itself. Deeper properties become one row with ``more``: they are not checked.
MAX_DEPTH: Final = 8

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a property as the file spells it, its allowed values, and its nested type."""

    type: str
    values: tuple[str, ...] = ()
    nested: Mapping[str, Any] | None = None


@dataclass
class Plugin:
    """The schema of a plugin."""

    document: Mapping[str, Any]
    """As ``pulumi package get-schema`` prints it."""

    @property
    def version(self) -> str:
        """Its version, if the schema has one."""
        return str(self.document.get("version") or "of unknown version")

    def shape(self, spec: Mapping[str, Any]) -> Shape:
        """The type of a property, of a list's items or of a map's values."""
        if reference := spec.get("$ref"):
            return self._referenced(reference)
        kind = spec.get("type")
        if kind == "array":
            item = self.shape(spec["items"])
            return Shape(f"list<{item.type}>", item.values, item.nested)
        if kind == "object":
            return Shape(f"map<{self.shape(spec.get('additionalProperties', {})).type}>")
        if kind is None and spec.get("oneOf"):
            return self.shape(spec["oneOf"][0])
        return Shape(SCALARS.get(str(kind or "string"), "string"))

    def _referenced(self, reference: str) -> Shape:
        if reference in ASSETS:
            return Shape("asset")
        if not reference.startswith("#/types/"):
            return Shape("string")  # a resource or ``pulumi.json#/Any``, given by name or as JSON
        found = self.document["types"][unquote(reference.removeprefix("#/types/"))]
        if "enum" in found:
            values = tuple(str(value["value"]) for value in found["enum"])
            return Shape(SCALARS[found["type"]], values)
        return Shape("object", nested=found)


@dataclass
class Report:
    """What the plugin's schema does not say, and what it no longer has."""

    lines: list[str] = field(default_factory=list)

    def add(self, token: str, name: str, text: str) -> None:
        """Add a line on one property, or on the type itself if ``name`` is empty."""
        self.lines.append(f"{token}{f' {name}' if name else ''}: {text}")


@dataclass
class Resource:
    """The rows of one resource type, from the plugin's schema and the rows of today's file."""

    token: str
    plugin: Plugin
    old: Mapping[str, Row]
    """Today's rows by name."""
    report: Report

    def rows(self) -> list[Row]:
        """All rows, parents first; known siblings in today's order, then new ones by name."""
        spec = self.plugin.document["resources"][self.token]
        rows = list(self._top(spec))
        names = {row["name"] for row in rows}
        for name in self.old:
            if name not in names:
                self.report.add(self.token, name, "gone: the plugin's schema does not have it")
        return rows

    def _top(self, spec: Mapping[str, Any]) -> Iterator[Row]:
        inputs, outputs = spec.get("inputProperties", {}), spec.get("properties", {})
        # The engine has an id for every resource, so a package schema does not list one.
        for name in self._ordered("", {*inputs, *outputs, *({"id"} & set(self.old))}):
            given = inputs.get(name, outputs.get(name))
            if given is None:
                yield dict(self.old[name])
                continue
            old = self.old.get(name, {})
            # A name that the SDK makes up is not among the required inputs.
            required = name in spec.get("requiredInputs", ()) or (
                name in inputs and bool(old.get("autoName") and old.get("required"))
            )
            optional = name in inputs and not required
            always_present = name in spec.get("required", ())
            computed = optional and self._computed(name, always_present)
            flags = {
                "required": required,
                "optional": optional,
                "computed": name not in inputs or computed,
                "forceNew": bool(given.get("willReplaceOnChanges")),
                "sensitive": bool(given.get("secret")),
            }
            yield from self._property(name, given, flags, is_input=name in inputs, depth=0)

    def _ordered(self, prefix: str, names: Iterable[str]) -> list[str]:
        """Known names in today's order, then the others in order of the alphabet."""
        order = {name: index for index, name in enumerate(self.old)}
        return sorted(names, key=lambda name: (order.get(f"{prefix}{name}", len(order)), name))

    def _computed(self, name: str, always_present: bool) -> bool:
        """Whether the provider fills in an optional input.

        Such an input that is always among the outputs is computed or has a default.
        """
        return always_present and "default" not in self.old.get(name, {})

    def _nested(
        self, path: str, suffix: str, spec: Mapping[str, Any], *, is_input: bool, depth: int
    ) -> Iterator[Row]:
        """The rows below ``path``. One type serves inputs and outputs, so less can be concluded."""
        if f"{path}.*" in self.old or depth > MAX_DEPTH:
            yield {"name": f"{path}.*", "more": True}
            return
        prefix = f"{path}{suffix}."
        for name in self._ordered(prefix, spec.get("properties", {})):
            given = spec["properties"][name]
            old = self.old.get(prefix + name)
            required = is_input and name in spec.get("required", ())
            flags = {
                "required": required,
                "optional": is_input
                and not required
                and (old is None or bool(old.get("optional") or old.get("required"))),
                "computed": not is_input or bool(old and not required and old.get("computed")),
            }
            for ours, theirs in (("forceNew", "willReplaceOnChanges"), ("sensitive", "secret")):
                kept = bool(old and old.get(ours))
                flags[ours] = bool(given.get(theirs)) or kept
                if kept and not given.get(theirs):
                    text = f"{ours} is kept: the plugin's schema does not have {theirs}"
                    self.report.add(self.token, prefix + name, text)
            yield from self._property(prefix + name, given, flags, is_input=is_input, depth=depth)

    def _property(
        self, path: str, spec: Mapping[str, Any], flags: Row, *, is_input: bool, depth: int
    ) -> Iterator[Row]:
        """The row of one property, then the rows below it."""
        shape, old = self.plugin.shape(spec), self.old.get(path)
        row: Row = {"name": path, "type": shape.type} | {key: True for key in flags if flags[key]}
        if "default" in spec:
            row["pulumiDefault"] = spec["default"]
        if old is None:
            row |= self._assume(path, shape, flags)
        else:
            row |= {key: old[key] for key in KEPT if key in old}
            if old["type"] == shape.type.replace("list<", "set<"):
                row["type"] = old["type"]
        if shape.values:
            row["values"] = list(shape.values)
        yield {key: row[key] for key in FIELDS if key in row}
        if shape.nested is not None:
            suffix = "[]" if shape.type.startswith("list<") else ""
            yield from self._nested(path, suffix, shape.nested, is_input=is_input, depth=depth + 1)

    def _assume(self, path: str, shape: Shape, flags: Row) -> Row:
        """Fields of a new property that the plugin's schema does not have."""
        assumed = ["tf", *(["type"] if shape.type.startswith("list<") else [])]
        if flags["optional"] and flags["computed"]:
            assumed.append("computed")
        text = f"new: measure {' and '.join(assumed)}, its default and what is returned without it"
        self.report.add(self.token, path, text)
        return {"tf": snake(path.rpartition(".")[2]), "assumed": assumed}


def generate(plugin: Plugin, today: Mapping[str, Any]) -> tuple[dict[str, Any], Report]:
    """The new document and a report; ``today`` is the document to follow on."""
    report = Report()
    types: dict[str, Any] = {}
    for token, kept in today["types"].items():
        if token not in plugin.document["resources"]:
            report.add(token, "", "kept as it is: the plugin's schema does not have the type")
            types[token] = kept
            continue
        old = {row["name"]: row for row in kept["properties"]}
        rows = Resource(token, plugin, old, report).rows()
        types[token] = {**kept, "properties": rows}
    measured = re.sub(r"^schema of [^;]*; the rest: ", "", today["source"])
    source = f"schema of pulumi-resource-gcp {plugin.version} (GetSchema); the rest: {measured}"
    return {**today, "source": source, "types": types}, report


def render(document: Mapping[str, Any]) -> str:
    """The text of the file: one property a line, so that a diff shows what changed."""
    head = [
        f"{json.dumps(key)}: {json.dumps(document[key])},\n" for key in document if key != "types"
    ]
    types = ",\n".join(
        f"{json.dumps(token)}: {_type(content)}" for token, content in document["types"].items()
    )
    return "{\n" + "".join(head) + '"types": {\n' + types + "\n}}\n"


def _type(content: Mapping[str, Any]) -> str:
    head = {key: value for key, value in content.items() if key != "properties"}
    rows = ",\n".join(
        f"  {json.dumps(row, separators=(',', ':'), ensure_ascii=False)}"
        for row in content["properties"]
    )
    return f'{json.dumps(head)[:-1]}, "properties": [\n{rows}]}}'


def main(arguments: list[str] | None = None) -> int:
    """Command line; see the module's docstring. Exit codes: 0 done or equal, 1 it would change."""
    parser = argparse.ArgumentParser(description="Write localcloud/localgcp/gcp/schema.json anew.")
    parser.add_argument("schema", type=Path, help="output of: pulumi package get-schema gcp")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    today = json.loads(TARGET.read_text(encoding="utf-8"))
    plugin = Plugin(json.loads(options.schema.read_text(encoding="utf-8")))
    document, report = generate(plugin, today)
    before, after = render(today), render(document)
    lines = before.splitlines(), after.splitlines()
    for line in difflib.unified_diff(*lines, "today", f"plugin {plugin.version}", "", "", 0, ""):
        print(line)
    for line in report.lines:
        print(f"note: {line}")
    if not options.check:
        TARGET.write_text(after, encoding="utf-8")
    return 1 if options.check and before != after else 0


if __name__ == "__main__":
    sys.exit(main())
