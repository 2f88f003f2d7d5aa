"""The section ``drift`` of a stack file: what may differ from what is declared, and why."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from vertex_training.settings.section import Key, Section


class AllowedMember(Section):
    """A member of an IAM policy that the stack does not declare and that is no drift."""

    member: Annotated[str, Field(min_length=1)]
    role: Annotated[str, Field(min_length=1)]
    policy: Annotated[str, Field(min_length=1)]
    """Name of the policy as ``vt drift`` shows it, like ``b/BUCKET``; ``*`` stands for any text."""
    reason: Annotated[str, Field(min_length=10)]
    """Why it is there, for who reads the file."""


class DriftSettings(Section):
    """Exceptions of ``vt drift``."""

    allowed: dict[Key, AllowedMember] = {}
