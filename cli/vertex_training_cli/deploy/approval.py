"""The record of what was approved: a commit's content, a stack, its target, a plan's digest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from vertex_training.errors import ApprovalParseError
from vertex_training_cli.deploy.target import Target

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Object ids of git: SHA-1 or SHA-256, in full.
ObjectId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
StackName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]

_MARKER: Final = re.compile(r"<!-- vt:approval (\{.*?\}) -->")


class Approval(BaseModel):
    """What may be deployed.

    ``commit`` is for people. What is compared is ``tree``, the id of its content: merging makes
    another commit of the same content, whichever way it is done.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[2] = 2
    stack: StackName
    commit: ObjectId
    tree: ObjectId
    report: Digest
    """The digest that ``vt review`` prints."""
    target: Target
    """Where it may be deployed to."""

    def as_json(self) -> str:
        """The record on one line, for ``parse_approval``. It ends no comment of HTML."""
        return self.model_dump_json().replace("<", "\\u003c").replace(">", "\\u003e")

    def as_marker(self) -> str:
        """The record as a comment of HTML, which Markdown does not show."""
        return f"<!-- vt:approval {self.as_json()} -->"


def parse_approval(text: str) -> Approval:
    """The record in ``text``.

    Raises:
        ApprovalParseError: it is none.
    """
    return _validated(lambda: Approval.model_validate_json(text.strip()))


def make_approval(fields: Mapping[str, object]) -> Approval:
    """The record with these fields.

    Raises:
        ApprovalParseError: they do not make one.
    """
    return _validated(lambda: Approval.model_validate(fields))


def _validated(read: Callable[[], Approval]) -> Approval:
    try:
        return read()
    except pydantic.ValidationError as failed:
        found = "; ".join(_field_error(error["loc"], error["msg"]) for error in failed.errors())
        raise ApprovalParseError(found) from None


def _field_error(path: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(part) for part in path)
    return f"{where}: {message}" if where else message


def find_marked_approval(line: str) -> Approval | None:
    """The record that a line of Markdown hides, or None if it hides none.

    Raises:
        ApprovalParseError: the line hides something like a record that is none.
    """
    found = _MARKER.fullmatch(line.strip())
    return parse_approval(found[1]) if found else None
