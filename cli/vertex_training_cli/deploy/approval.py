"""The record of what was approved: a commit's content, a stack, its target, a plan's digest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from vertex_training.errors import ApprovalParseError
from vertex_training_cli.deploy.target import Target

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Object ids of git: SHA-1 or SHA-256, in full.
ObjectId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
StackName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


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
        """The record on one line, for ``parse_approval``."""
        return self.model_dump_json()


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
