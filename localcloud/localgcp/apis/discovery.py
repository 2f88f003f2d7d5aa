"""REST methods from Google's discovery documents (written by ``tools.generate.discovery``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from localgcp.apis.transcoding import BOOLEANS, Scalar, Shape, check, message_shape
from localgcp.errors import InvalidRequestError

_SCALARS: Final = {
    "boolean": Scalar.BOOL,
    "integer": Scalar.INT32,
    "number": Scalar.DOUBLE,
    "string": Scalar.STRING,
    "any": Scalar.ANY,
}


@dataclass(frozen=True)
class DescribedMethod:
    """One method of a discovery document."""

    id: str
    verb: str
    template: str
    """Path template such as ``/compute/v1/projects/{project}/global/firewalls``."""
    parameters: Mapping[str, Any]
    """Name of a query parameter -> schema."""
    request: str = ""
    """Name of the request's message in ``schemas``; empty for a method without a body."""
    response: str = ""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # The path after the version, up to the last variable, is the name of a resource.
        base = re.match(r"/(?:\w+/)?v\d\w*/", self.template)
        assert base is not None, self.template

        def pattern(template: str) -> str:
            form = re.sub(r"\\{v\d\w*Id\\}", "projects", re.escape(template))
            return re.sub(r"\\{\w+\\}", "[^/:]+", form)

        end = self.template.rfind("}") + 1
        name, rest = pattern(self.template[base.end() : end]), pattern(self.template[end:])
        return re.compile(f"{re.escape(base[0])}(?P<name>{name})(?P<rest>{rest})")

    def matches(self, verb: str, path: str) -> bool:
        """Return whether the request (HTTP method and path) calls this method."""
        return verb == self.verb and self._pattern.fullmatch(path) is not None

    def parts(self, path: str) -> tuple[str, str]:
        """Return the resource name in a request's path, and the rest of the path."""
        match = self._pattern.fullmatch(path)
        assert match is not None, path
        return unquote(match["name"]), match["rest"]

    def variables(self, path: str) -> tuple[str, ...]:
        """Return the variables in a request's path, in the order of the template."""
        segments = zip(path.split("/"), self.template.split("/"), strict=True)
        return tuple(
            unquote(segment.partition(":")[0]) for segment, name in segments if "{" in name
        )

    def check_query(self, query: str, undocumented: Collection[str] = ()) -> None:
        """Check all query parameters, which may be undocumented. Raises InvalidRequestError."""
        mistakes: list[tuple[str, str]] = []
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name in self.parameters:
                shape = _shape(self.parameters[name])
                argument = BOOLEANS.get(value, value) if shape.scalar is Scalar.BOOL else value
                mistakes += check(argument, shape, name)
            elif (
                name not in undocumented and name.removeprefix("$") not in _document()["parameters"]
            ):
                text = f"Field '{name}' could not be found in request message."
                text = f'Unknown name "{name}": Cannot bind query parameter. {text}'
                mistakes.append(("", text))
        if mistakes:
            raise InvalidRequestError(mistakes)

    def check_body(self, document: Mapping[str, Any]) -> None:
        """Check that a body fits the request's message. Raises InvalidRequestError."""
        shape = _shape({"$ref": self.request}) if self.request else Shape(fields={}.get)
        at = "resource" if self.id.startswith("compute.") else ""
        if errors := list(check(document, shape, at)):
            raise InvalidRequestError(errors)

    def fit(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer without unknown fields, and with 64-bit numbers as text."""
        return _fit(answer, {"$ref": self.response}) if self.response else {}


def find(verb: str, path: str) -> DescribedMethod | None:
    """Return the method that a request calls, or None."""
    return next((method for method in methods().values() if method.matches(verb, path)), None)


@cache
def _document() -> dict[str, Any]:
    return json.loads(resources.files("localgcp.apis").joinpath("discovery.json").read_bytes())


def shape_errors(schema: str, document: Any) -> list[tuple[str, str]]:
    """Return path and text of each unknown field and each wrong type in a document."""
    return list(check(document, _shape({"$ref": schema})))


def fields_of(schema: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of a message by name; empty for an unknown message."""
    return _document()["schemas"].get(schema, {}).get("properties", {})


@cache
def methods() -> Mapping[str, DescribedMethod]:
    """Return all methods of the document, by id."""
    return {
        id_: DescribedMethod(id_, **description)
        for id_, description in _document()["methods"].items()
    }


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return _document()["schemas"][schema["$ref"]] if "$ref" in schema else schema


@cache
def _message(name: str) -> Shape:
    fields = _document()["schemas"][name].get("properties", {})
    return Shape(fields=lambda key: _shape(fields[key]) if key in fields else None, name=name)


def _shape(schema: Mapping[str, Any]) -> Shape:
    resolved = _resolved(schema)
    if "enum" in resolved:
        return Shape(scalar=Scalar.ENUM, values=frozenset(resolved["enum"]))
    if "$ref" in schema and "properties" in resolved:
        return _message(schema["$ref"])
    if resolved.get("type") == "array":
        return Shape(item=_shape(resolved["items"]))
    if "additionalProperties" in resolved:
        return Shape(value=_shape(resolved["additionalProperties"]))
    if resolved.get("type") == "object":
        fields = resolved.get("properties", {})
        return Shape(fields=lambda key: _shape(fields[key]) if key in fields else None)
    form = resolved.get("format", "")
    if form == "byte":
        return Shape(scalar=Scalar.BYTES)
    if kind := {"google-datetime": Timestamp, "google-duration": Duration}.get(form):
        return message_shape(kind.DESCRIPTOR)
    # Formats such as ``int64`` have the names of scalar types.
    return Shape(scalar=Scalar.__members__.get(form.upper()) or _SCALARS[resolved["type"]])


def _fit(value: Any, schema: Mapping[str, Any]) -> Any:
    resolved = _resolved(schema)
    if resolved.get("type") == "any":
        return value
    if isinstance(value, Mapping) and "additionalProperties" in resolved:
        return {
            key: _fit(element, resolved["additionalProperties"]) for key, element in value.items()
        }
    if isinstance(value, Mapping):
        fields = resolved.get("properties", {})
        return {
            key: _fit(element, fields[key])
            for key, element in value.items()
            # Unset fields are omitted, unless the field may have any type.
            if key in fields and (element not in (None, "") or fields[key].get("type") == "any")
        }
    if isinstance(value, list) and "items" in resolved:
        return [_fit(element, resolved["items"]) for element in value]
    if resolved.get("format") in ("int64", "uint64") and isinstance(value, int):
        return str(value)
    return value
