"""Provider of the components for programs in other languages, by Pulumi's component host.

The engine starts it as plugin ``pulumi-resource-vertex-training``. Its schema derives from the
annotations of the components. Only the rules of stack files check arguments.
"""

import ast
import inspect
import json
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import metadata, version
from typing import Any, Final, Literal, Optional, get_args, get_origin

from google.rpc import status_pb2

# Pulumi's SDK (3.272.0) has a copy of this message under another file name than Google's. A process
# cannot load both copies ("duplicate symbol 'google.rpc.Status'"), so Google's replaces the SDK's.
sys.modules["pulumi.runtime.proto.status_pb2"] = status_pb2

# isort: split
import pulumi
import pulumi.provider
from pulumi.errors import InputPropertiesError
from pulumi.provider.experimental import component
from pulumi.provider.experimental.analyzer import (
    Analyzer,
    EnumValueDefinition,
    PropertyDefinition,
    PropertyType,
    TypeDefinition,
)
from pulumi.provider.experimental.component import ComponentProvider

from vertex_training.components import sections
from vertex_training.components.arguments import ArgumentsError
from vertex_training.components.capacity import GpuReservation
from vertex_training.components.identities import TrainingAccount
from vertex_training.components.network import TrainingNetwork
from vertex_training.components.ordering import inside
from vertex_training.components.storage import TrainingBuckets
from vertex_training.components.training import Training, TrainingJob
from vertex_training.engine import HOSTED
from vertex_training.plugin_callers import guard_servers
from vertex_training.training_environment import TrainingEnvironment

NAME: Final = "vertex-training"
#: Namespace of generated packages, instead of Pulumi's.
NAMESPACE: Final = "vertextraining"
#: Metadata for registries, without addresses that others could register (decision 126).
ABOUT: Final = {
    "publisher": "vertex-training maintainers",
    "homepage": "https://docs.cloud.google.com/vertex-ai/docs/training/overview",
    "logoUrl": "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M2 3l6 10 6-10' fill='none' stroke='%234285f4' stroke-width='3'/%3E%3C/svg%3E",
}
COMPONENTS: Final[list[type[pulumi.ComponentResource]]] = [
    *(GpuReservation, TrainingAccount, TrainingBuckets),
    *(TrainingEnvironment, TrainingJob, TrainingNetwork),
]


class _Analyzer(Analyzer):
    """Analyzer that also reads docstrings of inherited fields, and treats ``Literal`` as enum."""

    def get_docstring(self, typ: type, name: str) -> str | None:
        """Return the docstring of a field, also from base classes."""
        if typ.__module__ == sections.__name__:
            return sections.docs_of(sections.MODELS[typ.__name__]).get(name)
        if text := super().get_docstring(typ, name):
            return text
        if typ.__module__ in sys.stdlib_module_names:
            return None
        texts = (self.get_docstring(base, name) for base in _bases(typ))
        return next((text for text in texts if text), None)

    def analyze_property(
        self, arg: Any, typ: type, name: str, *args: Any, **options: Any
    ) -> PropertyDefinition:
        """Convert a ``Literal`` of strings to an enum with the field's name."""
        values = get_args(arg)
        if get_origin(arg) is not Literal or not isinstance(values[0], str):
            return super().analyze_property(arg, typ, name, *args, **options)
        enum = _pascal(name)
        members = [EnumValueDefinition(_pascal(value.lower()), value) for value in values]
        known = self.type_definitions.setdefault(
            enum,
            TypeDefinition(enum, PropertyType.STRING, {}, {}, typ.__module__, arg, enum=members),
        )
        if [member.value for member in known.enum or []] != list(values):
            raise ValueError(
                f"{typ.__name__}.{name}: another field with this name has different values."
            )
        return PropertyDefinition(
            ref=f"#/types/{self.name}:index:{enum}",
            optional=bool(options.get("optional")),
            plain=options.get("can_be_plain") or None,
            description=self.get_docstring(typ, name),
        )


# Private in the SDK (3.272.0); tests/languages/test_schema.py fails if the name changes.
component.Analyzer = _Analyzer  # type: ignore[misc]


class Host(ComponentProvider):
    """Provider of all components, with a schema from their annotations."""

    def __init__(self) -> None:
        super().__init__(COMPONENTS, NAME, NAMESPACE, version(NAME))
        about = metadata(NAME)
        self.schema = json.dumps(
            {
                **_for_all_languages(json.loads(self.schema or "")),
                **ABOUT,
                "description": about["Summary"],
                "license": about["License-Expression"],
                "keywords": (about["Keywords"] or "").split(","),
            }
        )

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as the base class
    ) -> pulumi.provider.ConstructResult:
        """Create a component from inputs that only the component itself checks."""
        # The base class would check properties with its own messages, one mistake at a time.
        self.validate_resource_type(NAME, resource_type)
        kind = resource_type.rpartition(":")[2]
        # Private names of the SDK (3.272.0), covered by tests/unit/components/test_host.py.
        token = HOSTED.set(True)
        try:
            component = self._components[kind](name, inputs, options)  # type: ignore[call-arg]
        except ArgumentsError as failed:
            # A list of properties would make the engine print their values, even secret values.
            raise InputPropertiesError(str(failed), []) from None
        finally:
            HOSTED.reset(token)
        state = self.get_state(component, self._component_defs[kind])
        reached = [
            resource.reached for resource in inside([component]) if isinstance(resource, Training)
        ]
        urn = pulumi.Output.all(component.urn, *reached).apply(_urn_if_reached)
        return pulumi.provider.ConstructResult(urn, state)


@cache
def _bases(typ: type) -> list[type]:
    """Return the base classes in the source, since a typed dict has only dict at run time."""
    (tree,) = ast.parse(inspect.getsource(typ)).body
    names = [base.id for base in tree.bases if isinstance(base, ast.Name)]  # type: ignore[attr-defined]
    return [getattr(sys.modules[typ.__module__], name) for name in names]


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _urn_if_reached(values: Sequence[Any]) -> str:
    urn, *reached = values
    if not all(reached):  # the reason was logged
        raise InputPropertiesError("a job did not reach the state in its `wait`", [])
    return urn


def _for_all_languages(schema: Any) -> Any:
    """Convert descriptions in a schema to Markdown, without their Python examples."""
    if isinstance(schema, list):
        return [_for_all_languages(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    translated = {key: _for_all_languages(value) for key, value in schema.items()}
    if isinstance(description := translated.get("description"), str):
        text = inspect.cleandoc(description).partition("\n\nExample::")[0]
        translated["description"] = re.sub(r"(?::class:)?`+([^`]+)`+", r"`\1`", text)
    return translated


def main() -> None:
    """Serve the components to the engine, which started this process."""
    if len(sys.argv) < 2:
        sys.exit(
            f"{os.path.basename(sys.argv[0])} is a plugin that only pulumi starts. Run: "
            'pulumi package add "$(command -v pulumi-resource-vertex-training)"'
        )
    guard_servers()
    pulumi.provider.main(Host(), sys.argv[1:])
