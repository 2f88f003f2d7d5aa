"""Errors of the local cloud that a person is meant to read."""

from __future__ import annotations

from vt.errors import CommandError


class LocalError(CommandError):
    """Something about the local cloud that the operator can fix."""
