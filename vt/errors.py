"""The one kind of error of `vt`'s commands that a person is meant to read."""

from __future__ import annotations


class CommandError(Exception):
    """Something the operator can fix: printed as one plain line, never as a traceback.

    `message` says what, where and the value; `hint` says what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)
