"""Base of every section of a stack file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from vertex_training.naming import KEY_RULE

#: A relative path with ``/``, without ``..`` and characters that are special in a shell.
BELOW: Final = r"(?!\.\.?/)(?!.*/\.\.?(?:/|$))(?!.*(?://|/$))[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*"
#: Key of an entry of a stack file, which becomes part of the resource's name.
Key = Annotated[
    str,
    Field(
        pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$",
        max_length=40,
        json_schema_extra={"errorMessage": f"must be {KEY_RULE}"},
    ),
]


@dataclass(frozen=True, slots=True)
class Form:
    """Validator of a text's form. Its error message shows an example instead of the pattern."""

    pattern: re.Pattern[str]
    example: str

    def check(self, text: str) -> str:
        """Return ``text``, or raise ValueError if it does not match."""
        if not self.pattern.match(text):
            raise ValueError(f"must look like {self.example}")
        return text

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        whole = self.pattern.pattern.removesuffix(r"\Z")
        words = f"must look like {self.example}"
        return {**handler(schema), "pattern": f"^{whole}$", "errorMessage": words}


def form(pattern: str, example: str) -> Form:
    """Build a validator of texts that ``pattern`` matches as a whole."""
    return Form(re.compile(rf"(?:{pattern})\Z"), example)


#: Id of a project, which has the form of an account's id.
PROJECT: Final = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
ProjectId = Annotated[str, form(PROJECT, "my-project-1")]
ProjectNumber = Annotated[str, form(r"[0-9]{6,19}", '"210987654321"')]


def _kinds(annotation: Any) -> set[Any]:
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*map(_kinds, get_args(annotation)))
    return {annotation}


class Section(BaseModel):
    """Base of all sections: immutable, with keys in camelCase and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    @field_validator("*", mode="before")
    @classmethod  # pydantic would convert true and false to 1 and 0
    def _refuse_truth_as_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and info.field_name:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if bool not in kinds and not kinds.isdisjoint((int, float)):
                raise ValueError("must be a number")
        return value


class NamedSection(Section):
    """An entry whose key is part of its resource's name."""

    formerly: Key | None = None
    """Key before a rename. The name in the cloud and in the state derive from this key."""


#: The key of a stack file that lists files to include.
INCLUDE: Final = "include"
#: A relative path to a YAML file, with ``/`` and without ``.`` and ``..``.
INCLUDE_FORM: Final = r"(?!\.\.?/)(?!.*/\.\.?/)(?!.*//)[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*\.ya?ml"
IncludePath = Annotated[
    str, form(INCLUDE_FORM, "stacks/shared.yaml, a YAML file relative to the top of the checkout")
]
