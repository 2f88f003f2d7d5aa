"""What every section of a stack file has in common."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

#: A name that a stack file gives to something: it becomes part of names everywhere.
Key = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=40)]


def form(pattern: str, example: str) -> AfterValidator:
    """Text of a given form; the message about another one shows an example, not the pattern."""
    compiled = re.compile(rf"(?:{pattern})\Z")

    def check(text: str) -> str:
        if not compiled.match(text):
            raise ValueError(f"must look like {example}")
        return text

    return AfterValidator(check)


ProjectId = Annotated[str, form(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", "my-project-1")]
ProjectNumber = Annotated[str, form(r"[0-9]{6,19}", '"210987654321"')]


class Section(BaseModel):
    """Base of all sections: camelCase in the file, unknown keys refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class NamedSection(Section):
    """An entry whose key becomes part of the name of what is made."""

    formerly: Key | None = None
    """The key it was created under, which its name and its place in the state keep."""
