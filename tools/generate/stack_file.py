"""Write the JSON schema and the pages of stack files from the models of the settings.

``python -m tools.generate.stack_file`` writes ``stack.schema.json`` and section ``config`` of
``Pulumi.yaml``, here and in ``bootstrap``. A stack file names its schema in its first line:
``# yaml-language-server: $schema=stack.schema.json``.

``vt check`` also finds mistakes that a schema cannot express. Only the schema rejects a number in
quotes, and ``yes`` for ``true``.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic.alias_generators import to_camel

from vertex_training.components.sections import docs_of
from vertex_training.foundation.settings import SCHEMA as BOOTSTRAP
from vertex_training.settings.reader import PROVIDER, PROVIDER_KEYS, Schema, section_in
from vertex_training.settings.section import Section
from vertex_training.settings.stack_files import TOP_KEYS
from vertex_training.stack import SCHEMA as TRAINING

ROOT: Final = Path(__file__).parents[2]
SCHEMA_FILE: Final = "stack.schema.json"
PROJECT_FILE: Final = "Pulumi.yaml"
COLUMNS: Final = "| Key | Type | Default | Values | Meaning |\n|---|---|---|---|---|"
#: Words for the types of JSON.
WORDS: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}


@dataclass(frozen=True)
class Project:
    """A Pulumi project, and the model of its stack files."""

    schema: Schema[Any]
    folder: Path
    title: str

    @functools.cached_property
    def paths(self) -> dict[type[Section], list[str]]:
        """Return the paths of each section, such as ``buckets.NAME``, in the order of the file."""
        paths: dict[type[Section], list[str]] = {}
        for key, field in self.schema.fields.items():
            _find_sections(key, field.annotation, paths)
        return paths

    @functools.cached_property
    def messages(self) -> dict[str, dict[str, Any]]:
        """Return the JSON schemas of the model and its sections, by class name."""
        model: type[Section] = self.schema.model
        whole = model.model_json_schema()
        messages = {model.__name__: whole, **whole.pop("$defs")}
        for section in (model, *self.paths):
            message = messages[section.__name__]
            message["description"] = _plain(section.__doc__ or "")
            docs = {to_camel(name): text for name, text in docs_of(section).items()}
            for key, field in message["properties"].items():
                field["description"] = _plain(docs[key])
        return {name: _tidy(message) for name, message in messages.items()}

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Return the JSON schemas of all keys by full key. The keys of the provider come first."""
        properties = self.messages[self.schema.model.__name__]["properties"]
        provider = {f"{PROVIDER}:{key}": properties[key] for key in PROVIDER_KEYS}
        own = {f"{self.schema.namespace}:{key}": properties[key] for key in self.schema.fields}
        return provider | own

    def editor_schema(self) -> str:
        """Return the text of ``stack.schema.json``."""
        own = [re.escape(key.partition(":")[2]) for key in self.fields]
        unknown = f"^{self.schema.namespace}:(?!(?:{'|'.join(own)})$)"
        config = {
            "type": "object",
            "properties": {key: self._as_given(key) for key in self.fields},
            "patternProperties": {unknown: {"not": {}, "errorMessage": "unknown key"}},
        }
        document = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": self.title,
            "type": "object",
            "properties": {**{key: {} for key in TOP_KEYS}, "config": config},
            "additionalProperties": False,
            "definitions": {
                section.__name__: self.messages[section.__name__] for section in self.paths
            },
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    def _as_given(self, full: str) -> dict[str, Any]:
        """Return the field's JSON schema, in which some numbers may also be text."""
        field, key = self.fields[full], full.partition(":")[2]
        if "anyOf" in field:  # an empty section has the meaning of a missing section
            return {**field, "anyOf": [{"type": "object", "maxProperties": 0}, *field["anyOf"]]}
        is_text = full.startswith(f"{PROVIDER}:") or self.schema.is_text(key)
        return {**field, "type": ["string", "integer"]} if is_text else field

    def project_file(self) -> str:
        """Return the text of ``Pulumi.yaml`` with a generated section ``config``."""
        head = (self.folder / PROJECT_FILE).read_text(encoding="utf-8").partition("\nconfig:\n")[0]
        lines = [head, "config:", "  # Written by `python -m tools.generate.stack_file`."]
        for full, field in self.fields.items():
            if not full.startswith(f"{PROVIDER}:"):
                lines += [f"  {full}:", *(f"    {line}" for line in self._declaration(full, field))]
        return "\n".join(lines) + "\n"

    def _declaration(self, full: str, field: dict[str, Any]) -> Iterator[str]:
        kind = field.get("type", "object")
        yield f"type: {kind}"
        if kind == "array":
            yield "items: {type: string}"
        if not self.schema.fields[full.partition(":")[2]].is_required():
            empty = {"object": {}, "array": []}.get(kind)
            yield f"default: {json.dumps(field.get('default', empty))}"
        inside = _sections(field)
        keys = f" Keys: {', '.join(self.messages[inside[0]]['properties'])}." if inside else ""
        yield f"description: {json.dumps(field['description'] + keys, ensure_ascii=False)}"

    def tables(self) -> Iterator[str]:
        """Yield lines of Markdown with a table of the keys of each section."""
        yield f"## {self.title}\n\n{COLUMNS}"
        model: type[Section] = self.schema.model
        required = set(self.messages[model.__name__].get("required", ()))
        for full, field in self.fields.items():
            name = full if full.startswith(f"{PROVIDER}:") else full.partition(":")[2]
            yield self._row(name, field, full.partition(":")[2] in required)
        for section, paths in self.paths.items():
            message = self.messages[section.__name__]
            title = ", ".join(f"`{path}`" for path in paths)
            yield f"\n### {title}\n\n{message['description']}\n\n{COLUMNS}"
            required = set(message.get("required", ()))
            for key, field in message["properties"].items():
                yield self._row(key, field, key in required)

    def _row(self, key: str, field: dict[str, Any], required: bool) -> str:
        default = "required" if required else ""
        if field.get("default") is not None:
            default = f"`{json.dumps(field['default'])}`"
        cells = (f"`{key}`", self._type(field), default, _values(field), field["description"])
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    def _type(self, field: dict[str, Any]) -> str:
        if not field:
            return "any value"
        if "anyOf" in field:
            variants = [variant for variant in field["anyOf"] if variant.get("type") != "null"]
            return " or ".join(self._type(variant) for variant in variants)
        if "$ref" in field:
            [name] = _sections(field)
            paths = next(p for section, p in self.paths.items() if section.__name__ == name)
            anchor = re.sub(r"[^\w -]", "", ", ".join(paths).lower()).replace(" ", "-")
            return f"[section](#{anchor})"
        kind = field["type"] if isinstance(field["type"], str) else field["type"][0]
        if kind == "array":
            return f"list: {self._type(field['items'])}"
        if kind == "object":
            return f"mapping by name: {self._type(_entry(field))}"
        return "time" if field.get("format") == "date-time" else WORDS[kind]


def _find_sections(path: str, annotation: Any, paths: dict[type[Section], list[str]]) -> None:
    section, _ = section_in(annotation)
    if section is Section:
        return
    is_map = str(annotation).startswith("dict[")
    here = f"{path}.NAME" if is_map else path
    known = section in paths
    paths.setdefault(section, []).append(here)
    for name, field in section.model_fields.items() if not known else ():
        _find_sections(f"{here}.{to_camel(name)}", field.annotation, paths)


def _tidy(node: Any) -> Any:
    """Return a pydantic schema without titles and empty defaults, closed for names with a form."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {
        key: _tidy(value) for key, value in node.items() if key not in ("title", "propertyNames")
    }
    if isinstance(tidy.get("$ref"), str):
        tidy["$ref"] = tidy["$ref"].replace("$defs", "definitions")
    if tidy.get("default") is None or isinstance(tidy["default"], dict) or tidy["default"] == []:
        tidy.pop("default", None)
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    match tidy.get("anyOf"):
        case [{"type": str(kind)} as value, {"type": "null"}]:
            tidy = {
                **value,
                "type": [kind, "null"],
                **{k: v for k, v in tidy.items() if k != "anyOf"},
            }
            if "enum" in tidy:
                tidy["enum"] = [*tidy["enum"], None]
    return tidy


def _sections(field: dict[str, Any]) -> list[str]:
    return re.findall(r"#/definitions/(\w+)", json.dumps(field))


def _entry(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping's values; empty if any value is allowed."""
    patterns = field.get("patternProperties")
    value = next(iter(patterns.values())) if patterns else field["additionalProperties"]
    return {} if value is True else value


def _values(field: dict[str, Any]) -> str:
    parts = []
    match field:
        case {"enum": values}:
            parts.append(", ".join(f"`{value}`" for value in values if value is not None))
        case {"errorMessage": str(words)}:
            return words.removeprefix("must look ").removeprefix("must be ")
        case {"examples": [example]}:
            parts.append(f"like {example}")
    for key, words in {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "minLength": "characters: at least",
        "maxLength": "characters: at most",
        "minItems": "entries: at least",
    }.items():
        if key in field:
            parts.append(f"{words} {field[key]}")
    if "items" in field and "$ref" not in field["items"]:
        parts += filter(None, [_values(field["items"])])
    if field.get("type") == "object" and not _sections(field):
        parts += filter(None, [_values(_entry(field))])
    return "; ".join(parts)


def _plain(text: str) -> str:
    """Return a docstring as one paragraph of Markdown."""
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(inspect.cleandoc(text).split()))


PROJECTS: Final = (
    Project(TRAINING, ROOT, "Training stack"),
    Project(BOOTSTRAP, ROOT / "bootstrap", "Bootstrap stack"),
)


def tables() -> str:
    """Return the tables of all keys for the site."""
    return "\n".join(line for project in PROJECTS for line in (*project.tables(), ""))


#: Generated files, and the functions that return their texts.
TARGETS: Final[Mapping[Path, Callable[[], str]]] = {
    **{project.folder / SCHEMA_FILE: project.editor_schema for project in PROJECTS},
    **{project.folder / PROJECT_FILE: project.project_file for project in PROJECTS},
}

if __name__ == "__main__":
    for path, text in TARGETS.items():
        path.write_text(text(), encoding="utf-8")
